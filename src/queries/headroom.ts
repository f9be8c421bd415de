import type { Account, Attempt } from '../domain/attempt';
import { matches } from '../domain/matching';
import { formatMoney, parseMoney } from '../domain/money';
import { othersUnused } from '../domain/evaluate';
import { emptyBucket, placeIn, toBudgetPlace, within } from '../domain/places';
import type { Place } from '../domain/places';
import type { BudgetState } from '../domain/state';
import { recurs } from '../domain/windows';
import type { BudgetBalance } from '../domain/budget';
import { BudgetQueries } from '../read-models/budgets/budget-queries';
import type { BudgetView } from '../read-models/budgets/budget-queries';
import type { ReadServices } from './read-services';

/** What each matching budget has left for such a request, and the largest amount that would pass now. */
export interface Headroom {
  readonly budgets: readonly (BudgetBalance & { readonly mode: 'enforce' | 'warn'; readonly ended?: true })[];
  /** Absent where no budget would refuse. */
  readonly largestAmount?: string;
  readonly unbudgeted?: true;
}

export type HeadroomOf = Partial<Omit<Attempt, 'account'>> & {
  readonly provider?: string;
  readonly fingerprint?: string;
};

/** The check as a pure query of the read model: asks nothing of the writer, records nothing. */
export async function headroom(
  services: ReadServices,
  ledger: string,
  of: HeadroomOf,
  timezone: string,
): Promise<Headroom> {
  const attempt: Attempt = {
    ...of,
    account: { provider: of.provider ?? '', fingerprint: of.fingerprint ?? '' } as Account,
    model: of.model ?? '',
  };
  const nowMs = services.now();
  const queries = new BudgetQueries(services.pool);
  const places = (await allBudgets(queries, ledger, nowMs))
    .filter(({ budget }) => matches(budget.match, attempt))
    .map((view) => placeIn(stateOf(view), attempt, timezone, nowMs))
    .filter(({ span }) => span.fromMs === undefined || span.fromMs <= nowMs);
  const numbers = await queries.bucketBalances(ledger, places.map(toBudgetPlace));
  let largest: bigint | undefined;
  const budgets = places.map((place, i) => {
    const balance = balanceOf(place, numbers[i]);
    const ended = !within(place.span, nowMs);
    const { mode } = place.budget.definition;
    const room = ended || place.budget.limit === 0n ? 0n : parseMoney(balance.remaining);
    if (mode === 'enforce' && (largest === undefined || room < largest)) largest = room;
    return { ...balance, mode, ended: ended ? (true as const) : undefined };
  });
  return {
    budgets,
    largestAmount: largest === undefined ? undefined : formatMoney(largest > 0n ? largest : 0n),
    unbudgeted: places.length === 0 ? true : undefined,
  };
}

async function allBudgets(queries: BudgetQueries, ledger: string, nowMs: number): Promise<BudgetView[]> {
  const views: BudgetView[] = [];
  let cursor: string | undefined;
  do {
    const page = await queries.list(ledger, nowMs, { cursor, limit: 1_000 });
    views.push(...page.data);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return views;
}

function stateOf({ budget, generation }: BudgetView): BudgetState {
  return {
    id: budget.id,
    generation,
    retired: false,
    definition: budget,
    limit: parseMoney(budget.limit),
    setAsides: budget.setAsides.map(({ match, amount }) => ({ match, amount: parseMoney(amount) })),
    countedFrom: -1,
    armed: 0,
    windows: new Map(),
  };
}

type Numbers = Awaited<ReturnType<BudgetQueries['bucketBalances']>>[number];

function balanceOf(place: Place, numbers: Numbers | undefined): BudgetBalance {
  const bucket = emptyBucket(place.budget, place.values);
  for (const part of numbers?.setAsides ?? []) {
    const counter = bucket.setAsides[part.index];
    if (counter) Object.assign(counter, { charged: part.charged, held: part.held });
  }
  const charged = numbers?.charged ?? 0n;
  const held = numbers?.held ?? 0n;
  const named = toBudgetPlace(place);
  const left = place.budget.limit - charged - held - othersUnused(place.budget, bucket, place.setAside);
  return {
    ...named,
    limit: formatMoney(place.budget.limit),
    charged: formatMoney(charged),
    held: formatMoney(held),
    remaining: formatMoney(left),
    resetsAt: recurs(place.span.kind) ? named.window.to : undefined,
  };
}
