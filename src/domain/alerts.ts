import type { AlertRaised } from './events';
import { formatMoney } from './money';
import { bucketAt, placeIn, toBudgetPlace, within } from './places';
import type { Place } from './places';
import type { AttemptRecord, LedgerState } from './state';
import { windowKey } from './windows';

const alertKey = (place: Place, what: string): string =>
  [place.budget.id, place.budget.generation, windowKey(place.span), place.key, what]
    .join(':')
    .replaceAll('\u0000', '|');

/** Whether an amount has reached a fraction of a limit; exact to a millionth of the fraction. */
const reached = (used: bigint, limit: bigint, threshold: number): boolean =>
  used * 1_000_000n >= BigInt(Math.round(threshold * 1_000_000)) * limit;

/**
 * Alerts for thresholds that a change of `charged + held` reaches in these places: once per budget, window, bucket
 * and threshold, armed again when the limit changes (RULES 3, casebook 32).
 */
export function thresholdAlerts(places: readonly Place[], change: bigint, atMs: number): AlertRaised[] {
  const alerts: AlertRaised[] = [];
  if (change <= 0n) return alerts;
  for (const place of places) {
    const { thresholds } = place.budget.definition;
    if (thresholds.length === 0 || place.budget.limit === 0n) continue;
    const bucket = bucketAt(place);
    // A closed window that left memory has nobody to warn.
    if (!bucket && !within(place.span, atMs)) continue;
    const used = (bucket ? bucket.charged + bucket.held : 0n) + change;
    for (const threshold of thresholds) {
      if (bucket?.fired.includes(threshold) || !reached(used, place.budget.limit, threshold)) continue;
      alerts.push(thresholdAlert(place, threshold, used));
    }
  }
  return alerts;
}

function thresholdAlert(place: Place, threshold: number, used: bigint): AlertRaised {
  const { budget } = place;
  const { id, window, bucket } = toBudgetPlace(place);
  const percent = Math.round(threshold * 10_000) / 100;
  return {
    type: 'AlertRaised',
    data: {
      kind: 'budget_threshold',
      key: alertKey(place, `threshold:${threshold}:${budget.armed}`),
      detail: `budget ${id} has used ${formatMoney(used)} of ${formatMoney(budget.limit)} USD: ${percent} % is reached`,
      budget: id,
      window,
      ...(bucket && { bucket }),
      threshold,
    },
  };
}

/** Once per budget and window: a bucket more than it may have was asked for. */
export function bucketsFullAlert(
  state: LedgerState,
  id: string,
  of: AttemptRecord,
  atMs: number,
): AlertRaised | undefined {
  const budget = state.budgets.get(id);
  if (!budget) return undefined;
  const place = placeIn(budget, of, state.settings.timezone, atMs);
  const window = budget.windows.get(windowKey(place.span));
  if (!window || window.fullAlerted) return undefined;
  return {
    type: 'AlertRaised',
    data: {
      kind: 'too_many_buckets',
      key: alertKey(place, 'buckets'),
      detail: `budget ${id} has ${window.buckets.size} buckets, as many as it may have: new ones are refused`,
      budget: id,
      window: toBudgetPlace(place).window,
    },
  };
}
