import type { Bucket, Window } from '../../domain/budget';
import { formatMoney } from '../../domain/money';
import type { AttemptRecord, BudgetState, LedgerState } from '../../domain/state';
import type { Settings } from '../../domain/settings';
import { toTime, toWindow } from '../../domain/windows';

interface BucketAt {
  readonly bucket?: Bucket;
  readonly window: Window;
  readonly charged: string;
  readonly held: string;
}

/** The ledger as it stood: every budget window, every open reservation. */
export interface StateView {
  readonly ledger: string;
  readonly revision: number;
  /** The moment asked for, else that of the last event. */
  readonly at: string;
  readonly settings: Settings;
  readonly totals: { readonly charged: string; readonly held: string };
  readonly budgets: readonly {
    readonly id: string;
    readonly generation: number;
    readonly limit: string;
    readonly buckets: readonly BucketAt[];
  }[];
  readonly reservations: readonly ({
    readonly id: string;
    readonly amount: string;
    readonly expiresAt: string;
  } & AttemptRecord)[];
  /** More buckets or reservations than are listed. */
  readonly truncated?: true;
}

/** Listed at most: the rest is counted in the totals. */
const MOST = 10_000;

export function totalsOf(state: LedgerState): { charged: bigint; held: bigint } {
  let charged = 0n;
  let held = 0n;
  for (const { cost } of state.charges.values()) charged += cost;
  for (const { status, amount } of state.reservations.values()) if (status === 'held') held += amount;
  return { charged, held };
}

export function viewOfState(state: LedgerState, atMs: number): StateView {
  const totals = totalsOf(state);
  const open = [...state.reservations.values()].filter(({ status }) => status === 'held');
  const budgets = [...state.budgets.values()].filter(({ retired }) => !retired);
  const buckets = budgets.reduce(
    (sum, { windows }) => sum + [...windows.values()].reduce((n, w) => n + w.buckets.size, 0),
    0,
  );
  return {
    ledger: state.ledger,
    revision: state.revision,
    at: toTime(atMs),
    settings: state.settings,
    totals: { charged: formatMoney(totals.charged), held: formatMoney(totals.held) },
    budgets: budgets.map((budget) => ({
      id: budget.id,
      generation: budget.generation,
      limit: formatMoney(budget.limit),
      buckets: bucketsOf(budget),
    })),
    reservations: open.slice(0, MOST).map(({ id, amount, expiresAtMs, of }) => ({
      ...of,
      id,
      amount: formatMoney(amount),
      expiresAt: toTime(expiresAtMs),
    })),
    truncated: open.length > MOST || buckets > MOST ? true : undefined,
  };
}

function bucketsOf({ windows }: BudgetState): BucketAt[] {
  const listed: BucketAt[] = [];
  for (const { span, buckets } of windows.values()) {
    for (const { values, charged, held } of buckets.values()) {
      if (listed.length === MOST) return listed;
      listed.push({
        bucket: values,
        window: toWindow(span),
        charged: formatMoney(charged),
        held: formatMoney(held),
      });
    }
  }
  return listed;
}
