import type { Account, Attempt, Tags } from './attempt';
import type { BudgetDefinition } from './budget';
import type { Outcome } from './events';
import type { RatesText } from './prices';
import type { Settings } from './settings';
import type { Usage } from './usage';

/** What a caller says about one attempt before it is made. */
export interface EstimateRequest {
  readonly inputTokens?: number;
  /** Used where the caller did not count tokens: ceil(characters / 4). */
  readonly inputChars?: number;
  readonly maxOutputTokens?: number;
  /** The caller writes a cache: input counts at the cache-write rate where the model has one. */
  readonly cacheWrite?: '5m' | '1h';
  readonly audioInputTokens?: number;
  readonly audioOutputTokens?: number;
  readonly images?: number;
  readonly audioSeconds?: number;
  readonly searches?: number;
}

export interface Candidate {
  readonly account: Account;
  readonly model: string;
  readonly estimate: EstimateRequest;
}

export interface CheckBudget {
  readonly type: 'CheckBudget';
  readonly requestId: string;
  readonly attempt: number;
  /** The request itself and its fallbacks, in order; at most 9. */
  readonly candidates: readonly Candidate[];
  readonly workload?: string;
  readonly subject?: string;
  readonly conversation?: string;
  readonly tags?: Tags;
  readonly job?: string;
  readonly serviceTier?: string;
  /** false: only asks; nothing is held, no identity is taken. */
  readonly reserve: boolean;
  readonly ttlSeconds?: number;
  readonly bodyHash: string;
}

/** A provider's error as the caller has it, reduced to what the ledger may keep. */
export interface ReportedError {
  readonly status: number;
  readonly type?: string;
  readonly code?: string;
}

export interface RecordUsage {
  readonly type: 'RecordUsage';
  /** Usage for a reservation, or usage nobody reserved. */
  readonly of:
    | { readonly reservationId: string }
    | {
        readonly usageId: string;
        readonly attempt: Attempt;
        readonly requestId?: string;
        readonly attemptNumber?: number;
        readonly job?: string;
        /** Moment of the call, ms since epoch; absent: now. */
        readonly occurredAtMs?: number;
      };
  /** The model and tier that were served, where the provider says. */
  readonly servedModel?: string;
  readonly servedTier?: string;
  readonly providerRequestId?: string;
  readonly outcome: Outcome;
  /** Normalised into disjoint classes. */
  readonly usage?: Usage;
  /** The usage is only what was seen before the stream broke, not the provider's final figure. */
  readonly partial?: boolean;
  /** The provider's own figure, decimal USD; `upstream` is added where the customer's own key was used. */
  readonly reportedCost?: string;
  readonly upstreamCost?: string;
  readonly error?: ReportedError;
  readonly bodyHash: string;
}

export interface ReleaseReservation {
  readonly type: 'ReleaseReservation';
  readonly reservationId: string;
}
export interface ExtendReservation {
  readonly type: 'ExtendReservation';
  readonly reservationId: string;
  readonly ttlSeconds: number;
}
export interface CorrectCharge {
  readonly type: 'CorrectCharge';
  readonly chargeId: string;
  readonly correctionId: string;
  /** The new total, decimal USD, ≥ 0. */
  readonly amount: string;
  readonly reason: string;
  readonly bodyHash: string;
}

export interface OpenLedger {
  readonly type: 'OpenLedger';
  readonly settings: Partial<Settings>;
}
export interface ChangeSettings {
  readonly type: 'ChangeSettings';
  /** Fields left out keep their values. */
  readonly settings: Partial<Settings>;
}
export interface DefineBudget {
  readonly type: 'DefineBudget';
  readonly budget: BudgetDefinition;
  /** `now`: starting at zero in the middle of a window is meant. */
  readonly countFrom: 'window' | 'now';
}
export interface RetireBudget {
  readonly type: 'RetireBudget';
  readonly id: string;
}
export interface SetPrice {
  readonly type: 'SetPrice';
  readonly provider: string;
  readonly model: string;
  readonly rates: RatesText;
  readonly serviceTiers?: Readonly<Record<string, RatesText>>;
  readonly embedding?: boolean;
  readonly origin: string;
}
export interface RetirePrice {
  readonly type: 'RetirePrice';
  readonly provider: string;
  readonly model: string;
}
/** Books what is due; sent by the writer itself. */
export interface ExpireDue {
  readonly type: 'ExpireDue';
  /** At most this many reservations. */
  readonly limit: number;
}

export type Command =
  | CheckBudget
  | RecordUsage
  | ReleaseReservation
  | ExtendReservation
  | CorrectCharge
  | OpenLedger
  | ChangeSettings
  | DefineBudget
  | RetireBudget
  | SetPrice
  | RetirePrice
  | ExpireDue;
