import type { Dimension, Tags } from './attempt';

/** Which attempts a budget or a set-aside covers: all of the fields given must be equal. */
export interface Match {
  readonly provider?: string;
  /** The account's fingerprint. */
  readonly account?: string;
  readonly model?: string;
  readonly workload?: string;
  readonly subject?: string;
  readonly conversation?: string;
  readonly tags?: Tags;
}

/** A recurring window, a fixed one `[from, to)` in RFC 3339, or all of time. */
export type WindowRule =
  'day' | 'week' | 'month' | 'lifetime' | { readonly from: string; readonly to: string };

export interface SetAside {
  readonly match: Match;
  /** Decimal USD. */
  readonly amount: string;
}

/** A budget as an operator writes it, defaults filled in; as it stands in events. */
export interface BudgetDefinition {
  readonly id: string;
  readonly match: Match;
  /** One bucket per combination of values of these dimensions, sorted. Empty: one bucket for all. */
  readonly each: readonly Dimension[];
  readonly window: WindowRule;
  /** Decimal USD; per bucket with `each`. */
  readonly limit: string;
  readonly setAsides: readonly SetAside[];
  readonly mode: 'enforce' | 'warn';
  /** Fractions of the limit, ascending. */
  readonly thresholds: readonly number[];
  readonly maxBuckets: number;
}

export const DEFAULT_MAX_BUCKETS = 1_000_000;
export const DEFAULT_THRESHOLDS: readonly number[] = [0.5, 0.8, 1];

/** One concrete window of a budget. Times RFC 3339 UTC; a lifetime has neither. */
export interface Window {
  readonly kind: 'day' | 'week' | 'month' | 'fixed' | 'lifetime';
  readonly from?: string;
  readonly to?: string;
}

/** The values of a bucket, by dimension (null: the shared bucket of requests without it); absent without `each`. */
export type Bucket = Readonly<Record<string, string | null>>;

/** Where a reservation or charge counts: one bucket of one window of one generation of a budget. */
export interface BudgetPlace {
  readonly id: string;
  readonly generation: number;
  readonly window: Window;
  readonly bucket?: Bucket;
  /** Index of the set-aside the attempt belongs to. */
  readonly setAside?: number;
}

/** A place with its numbers, decimal USD: before the hold when refused, after it when allowed. */
export interface BudgetBalance extends BudgetPlace {
  readonly limit: string;
  readonly charged: string;
  readonly held: string;
  /** limit − charged − held − what is set aside for others and unused; may be negative. */
  readonly remaining: string;
  /** When the window ends and another begins; absent for fixed and lifetime windows. */
  readonly resetsAt?: string;
}

/** What a bucket held already when the budget was defined: the `opening` of BudgetDefined and BudgetAmended. */
export interface OpeningBalance {
  readonly window: Window;
  readonly bucket?: Bucket;
  readonly charged: string;
  readonly held: string;
  /** By set-aside index: what of it counts in that set-aside. */
  readonly setAsides?: readonly { readonly index: number; readonly charged: string; readonly held: string }[];
}
