import type { Bucket, BudgetDefinition, Window } from '../../domain/budget';
import { formatMoney } from '../../domain/money';
import { emptyBucket, within } from '../../domain/places';
import type {
  AttemptRecord,
  BucketState,
  BudgetState,
  LedgerState,
  ReservationState,
} from '../../domain/state';
import type { Settings } from '../../domain/settings';
import { recurs, toTime, toWindow, windowAt, windowKey } from '../../domain/windows';
import type { TimeSpan } from '../../domain/windows';

/** Shown at most; the counts beside them are whole. */
const MOST_BUCKETS = 1_000;
const MOST_RESERVATIONS = 1_000;

/** One bucket of one window. Amounts decimal USD, times RFC 3339 UTC. */
export interface BucketStood {
  readonly window: Window;
  readonly bucket?: Bucket;
  readonly charged: string;
  readonly held: string;
  /** limit − charged − held; may be negative. */
  readonly remaining: string;
  readonly setAsides?: readonly { readonly charged: string; readonly held: string }[];
}

export type BudgetStood = BudgetDefinition & {
  readonly generation: number;
  readonly retired?: true;
  /** In all of its windows; `buckets` shows at most 1,000 of a window, by key. */
  readonly bucketCount: number;
  readonly buckets: readonly BucketStood[];
};

export type ReservationStood = AttemptRecord & {
  readonly id: string;
  readonly revision: number;
  readonly amount: string;
  readonly reservedAt: string;
  readonly expiresAt: string;
};

/** A ledger as it stood at a revision. */
export interface StateView {
  readonly ledger: string;
  readonly revision: number;
  readonly at: string;
  readonly settings: Settings;
  readonly totals: {
    readonly charged: string;
    readonly held: string;
    readonly charges: number;
    readonly heldReservations: number;
    /** Charges that wait for a price. */
    readonly unpriced: number;
  };
  readonly budgets: readonly BudgetStood[];
  /** Open ones, oldest first, at most 1,000; `totals.heldReservations` counts all. */
  readonly reservations: readonly ReservationStood[];
}

export function stateView(state: LedgerState): StateView {
  const { ledger, revision, at, settings } = state;
  const open = [...state.reservations.values()].filter(({ status }) => status === 'held');
  open.sort((a, b) => a.revision - b.revision);
  let charged = 0n;
  for (const charge of state.charges.values()) charged += charge.cost;
  return {
    ledger,
    revision,
    at: toTime(at),
    settings,
    totals: {
      charged: formatMoney(charged),
      held: formatMoney(open.reduce((sum, { amount }) => sum + amount, 0n)),
      charges: state.charges.size,
      heldReservations: open.length,
      unpriced: state.unpriced.size,
    },
    budgets: [...state.budgets.values()]
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map((budget) => budgetStood(budget, settings.timezone, at)),
    reservations: open.slice(0, MOST_RESERVATIONS).map(reservationStood),
  };
}

function budgetStood(budget: BudgetState, timezone: string, atMs: number): BudgetStood {
  const { definition, generation, retired } = budget;
  const spans = retired ? [] : spansOf(budget, timezone, atMs);
  const windows = spans.map((span) => ({ span, buckets: bucketsIn(budget, span) }));
  return {
    ...definition,
    generation,
    ...(retired && { retired }),
    bucketCount: windows.reduce((sum, { buckets }) => sum + buckets.size, 0),
    buckets: windows.flatMap(({ span, buckets }) =>
      [...buckets]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .slice(0, MOST_BUCKETS)
        .map(([, bucket]) => bucketStood(budget, span, bucket)),
    ),
  };
}

/** The window of the moment, spent in or not, and others that still hold money or never close. */
function spansOf(budget: BudgetState, timezone: string, atMs: number): TimeSpan[] {
  const current = windowAt(budget.definition.window, timezone, atMs);
  const spans = new Map([[windowKey(current), current]]);
  for (const [key, { span, holds }] of budget.windows) {
    if (holds > 0 || !recurs(span.kind) || within(span, atMs)) spans.set(key, span);
  }
  return [...spans].sort(([a], [b]) => a - b).map(([, span]) => span);
}

/** A window that nothing counted in has one empty bucket, unless there would be one a value. */
function bucketsIn(budget: BudgetState, span: TimeSpan): ReadonlyMap<string, BucketState> {
  const buckets = budget.windows.get(windowKey(span))?.buckets ?? new Map<string, BucketState>();
  if (buckets.size > 0 || budget.definition.each.length > 0) return buckets;
  return new Map([['', emptyBucket(budget, undefined)]]);
}

function bucketStood({ limit }: BudgetState, span: TimeSpan, bucket: BucketState): BucketStood {
  const { values, charged, held, setAsides } = bucket;
  return {
    window: toWindow(span),
    ...(values && { bucket: values }),
    charged: formatMoney(charged),
    held: formatMoney(held),
    remaining: formatMoney(limit - charged - held),
    ...(setAsides.length > 0 && {
      setAsides: setAsides.map((part) => ({
        charged: formatMoney(part.charged),
        held: formatMoney(part.held),
      })),
    }),
  };
}

function reservationStood(reservation: ReservationState): ReservationStood {
  const { id, revision, of, amount, reservedAtMs, expiresAtMs } = reservation;
  return {
    ...of,
    id,
    revision,
    amount: formatMoney(amount),
    reservedAt: toTime(reservedAtMs),
    expiresAt: toTime(expiresAtMs),
  };
}
