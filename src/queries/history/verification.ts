import { formatMoney } from '../../domain/money';
import type { LedgerState } from '../../domain/state';
import type { Totals } from '../../read-models/totals';
import { totalsOf } from './state-view';

export type Expected = Totals;

interface Sums {
  readonly charged: string;
  readonly held: string;
}

export interface Verification {
  readonly ok: boolean;
  readonly head: { readonly revision: number; readonly hash: string };
  readonly events: number;
  readonly faults: readonly string[];
  /** The read model's sums beside those of a fresh fold up to the same position. */
  readonly totals?: { readonly position: number; readonly readModel: Sums; readonly fold: Sums };
}

/** What a fold knows at a position; nano-dollars. */
export interface FoldTotals {
  readonly hash: string;
  readonly charged: bigint;
  /** Held until their end is in the log, as read models count it. */
  readonly held: bigint;
  /** By budget, generation and beginning of the window; windows that left memory are not in it. */
  readonly windows: ReadonlyMap<string, { readonly charged: bigint; readonly held: bigint }>;
  /** Holds given back by time alone: their end is not in the log yet. */
  readonly dueReleases: boolean;
}

const windowName = (budget: string, generation: number, window: number): string =>
  `${budget}#${generation}@${window}`;

export function totalsAt(state: LedgerState, hash: string): FoldTotals {
  let held = 0n;
  let dueReleases = false;
  for (const reservation of state.reservations.values()) {
    if (reservation.settled) continue;
    held += reservation.amount;
    if (reservation.status !== 'held') dueReleases = true;
  }
  const windows = new Map<string, { charged: bigint; held: bigint }>();
  for (const budget of state.budgets.values()) {
    if (budget.retired) continue;
    for (const [key, { buckets }] of budget.windows) {
      const sums = { charged: 0n, held: 0n };
      for (const bucket of buckets.values()) {
        sums.charged += bucket.charged;
        sums.held += bucket.held;
      }
      windows.set(windowName(budget.id, budget.generation, key), sums);
    }
  }
  return { hash, charged: totalsOf(state).charged, held, windows, dueReleases };
}

/** Holds the read models against the fold, each at its own position. */
export function compare(
  { spend, budgets }: Expected,
  atSpend: FoldTotals | undefined,
  atBudgets: FoldTotals | undefined,
): { readonly faults: string[]; readonly totals: Verification['totals'] } {
  const faults: string[] = [];
  const differ = (what: string, model: bigint, fold: bigint) => {
    if (model !== fold)
      faults.push(`${what}: the read model has ${formatMoney(model)}, a fresh fold ${formatMoney(fold)}`);
  };
  if (!atSpend || !atBudgets) return { faults: ['a read model is ahead of the log'], totals: undefined };
  if (atSpend.hash !== spend.hash)
    faults.push(`read model spend stands on another event at revision ${spend.position}`);
  if (atBudgets.hash !== budgets.hash)
    faults.push(`read model budgets stands on another event at revision ${budgets.position}`);
  differ('charged', spend.charged, atSpend.charged);
  differ('charged by day', spend.chargedInCube, atSpend.charged);
  differ('held', spend.held, atSpend.held);
  for (const { budget, generation, windowKey, charged, held } of budgets.windows) {
    const name = windowName(budget, generation, windowKey);
    const fold = atBudgets.windows.get(name);
    if (!fold) continue;
    differ(`charged in ${name}`, charged, fold.charged);
    if (!atBudgets.dueReleases) differ(`held in ${name}`, held, fold.held);
  }
  const readModel = { charged: formatMoney(spend.charged), held: formatMoney(spend.held) };
  const fold = { charged: formatMoney(atSpend.charged), held: formatMoney(atSpend.held) };
  return { faults, totals: { position: spend.position, readModel, fold } };
}
