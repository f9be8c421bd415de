import type { Account, Tags } from './attempt';
import type { BudgetBalance, BudgetDefinition, BudgetPlace, OpeningBalance } from './budget';
import type { Price, RatesText } from './prices';
import type { OnExpiry, Settings } from './settings';
import type { Usage } from './usage';

/** Amounts in events are decimal USD strings; times are RFC 3339 UTC with milliseconds. */
type Usd = string;
type Time = string;

/** The attempt as events carry it. */
export interface AttemptData {
  readonly account: Account;
  readonly model: string;
  readonly modelId?: string;
  readonly workload?: string;
  readonly subject?: string;
  readonly conversation?: string;
  readonly tags?: Tags;
  readonly job?: string;
  readonly serviceTier?: string;
}

/** Why a check was refused, or would have been. Amounts are those the decision was judged on. */
export interface Reason {
  readonly code: RefusalCode;
  /** 0 for the request itself, n for its n-th fallback. */
  readonly candidate: number;
  readonly detail?: string;
  readonly budget?: string;
  readonly window?: BudgetPlace['window'];
  readonly bucket?: BudgetPlace['bucket'];
  readonly limit?: Usd;
  readonly charged?: Usd;
  readonly held?: Usd;
  /** What is set aside for others and not yet used by them. */
  readonly setAside?: Usd;
  readonly remaining?: Usd;
  readonly resetsAt?: Time;
  readonly incident?: string;
}

/** In the order in which the first is chosen as `code` (RULES 2.2). */
export const REFUSAL_CODES = [
  'breaker_open',
  'provider_cap',
  'unknown_price',
  'no_budget',
  'too_many_budgets',
  'budget_ended',
  'budget_exceeded',
  'too_many_buckets',
  'balance_exceeded',
] as const;
export type RefusalCode = (typeof REFUSAL_CODES)[number];

export type Quality = 'assumed' | 'unconfirmed' | 'confirmed';
export type Outcome = 'succeeded' | 'failed' | 'aborted';

/** A provider's error without its text: the text is kept only where it is a known shape (DESIGN 4). */
export interface ErrorData {
  readonly status: number;
  readonly type?: string;
  readonly code?: string;
}

interface EventOf<T extends string, D> {
  readonly type: T;
  readonly data: D;
}

export type LedgerOpened = EventOf<'LedgerOpened', { readonly settings: Settings }>;
export type SettingsChanged = EventOf<'SettingsChanged', { readonly settings: Settings }>;

export type BudgetDefined = EventOf<
  'BudgetDefined',
  {
    readonly budget: BudgetDefinition;
    /** 1, and one more with each change of match, each or window, and each definition after a retirement. */
    readonly generation: number;
    readonly countFrom: 'window' | 'now';
    readonly opening: readonly OpeningBalance[];
  }
>;
export type BudgetAmended = EventOf<
  'BudgetAmended',
  {
    readonly budget: BudgetDefinition;
    readonly generation: number;
    /** Present where a set-aside's match or the fixed `to` changed: replaces the counters. */
    readonly opening?: readonly OpeningBalance[];
  }
>;
export type BudgetRetired = EventOf<'BudgetRetired', { readonly id: string; readonly generation: number }>;

export type PriceListed = EventOf<'PriceListed', { readonly price: Price }>;
export type PriceSet = EventOf<'PriceSet', { readonly price: Price }>;
export type PriceRetired = EventOf<
  'PriceRetired',
  { readonly provider: string; readonly model: string; readonly priceId: string }
>;

export type SpendEstimated = EventOf<
  'SpendEstimated',
  AttemptData & {
    readonly requestId: string;
    readonly attempt: number;
    readonly candidate: number;
    readonly usage: Usage;
    readonly priceId?: string;
    readonly priceExact?: boolean;
    /** Absent where the price is unknown. */
    readonly amount?: Usd;
    /** Only asked: no reservation and no refusal follows. */
    readonly advisory?: true;
  }
>;

export type SpendReserved = EventOf<
  'SpendReserved',
  AttemptData & {
    readonly reservationId: string;
    readonly requestId: string;
    readonly attempt: number;
    readonly candidate: number;
    /** Hex digest of the command's canonical body, for telling a repeat from a conflict. */
    readonly bodyHash: string;
    readonly usage: Usage;
    readonly priceId?: string;
    readonly amount: Usd;
    /** The maximum output the caller asked for: what an aborted call is settled at. */
    readonly maxOutputTokens?: number;
    readonly expiresAt: Time;
    readonly onExpiry: OnExpiry;
    readonly budgets: readonly BudgetBalance[];
    readonly fallbackFrom?: { readonly account: Account; readonly model: string };
    /** Why the earlier candidates were skipped. */
    readonly skipped?: readonly Reason[];
    readonly warnings?: readonly Reason[];
    readonly wouldRefuse?: readonly Reason[];
    readonly unbudgeted?: true;
  }
>;

export type SpendRefused = EventOf<
  'SpendRefused',
  AttemptData & {
    readonly requestId: string;
    readonly attempt: number;
    readonly bodyHash: string;
    readonly code: RefusalCode;
    readonly reasons: readonly Reason[];
    /** The first candidate's estimate. */
    readonly usage: Usage;
    readonly amount?: Usd;
    readonly retryAt?: Time;
    readonly nextAttempt: number;
  }
>;

/** What a charge says, whoever made it: shared by UsageCharged and ChargeCorrected. */
export interface ChargeFigures {
  readonly cost: Usd;
  readonly quality: Quality;
  readonly usage: Usage;
  readonly outcome?: Outcome;
  /** The model and tier that were served, where they differ from those reserved. */
  readonly servedModel?: string;
  readonly servedTier?: string;
  readonly priceId?: string;
  /** Our own figure, where the provider's reported cost won over it. */
  readonly ownCost?: Usd;
  readonly reportedCost?: Usd;
  readonly upstreamCost?: Usd;
  readonly providerRequestId?: string;
  /** Part of the usage had no price: the figure is a lower bound and waits for a correction. */
  readonly unpriced?: true;
  readonly error?: ErrorData;
  /** What of the reservation was given back, and what was spent beyond it. */
  readonly released: Usd;
  readonly overrun: Usd;
  readonly late?: true;
}

export type UsageCharged = EventOf<
  'UsageCharged',
  AttemptData &
    ChargeFigures & {
      readonly chargeId: string;
      readonly reservationId?: string;
      readonly usageId?: string;
      readonly requestId?: string;
      readonly attempt?: number;
      readonly bodyHash?: string;
      /** Nobody reported: the estimate was booked when the reservation expired. */
      readonly assumed?: true;
      /** A second paid call on a reservation that was already charged under another provider request id. */
      readonly duplicateSend?: true;
      /** The moment whose windows it counts in: when reserved, else occurredAt. */
      readonly countedAt: Time;
      readonly reserved?: Usd;
      readonly budgets: readonly BudgetPlace[];
    }
>;

export type ChargeCorrected = EventOf<
  'ChargeCorrected',
  AttemptData &
    ChargeFigures & {
      readonly chargeId: string;
      readonly reservationId?: string;
      readonly usageId?: string;
      readonly requestId?: string;
      readonly attempt?: number;
      readonly bodyHash?: string;
      readonly previousCost: Usd;
      readonly cause: 'usage' | 'release' | 'price' | 'operator';
      readonly correctionId?: string;
      readonly reason?: string;
      readonly countedAt: Time;
      readonly budgets: readonly BudgetPlace[];
    }
>;

export type ReservationReleased = EventOf<
  'ReservationReleased',
  {
    readonly reservationId: string;
    readonly requestId: string;
    readonly attempt: number;
    readonly amount: Usd;
    readonly budgets: readonly BudgetPlace[];
  }
>;
/** With onExpiry `assume-spent` an assumed UsageCharged follows in the same batch. */
export type ReservationExpired = EventOf<
  'ReservationExpired',
  {
    readonly reservationId: string;
    readonly requestId: string;
    readonly attempt: number;
    readonly amount: Usd;
    readonly onExpiry: OnExpiry;
    readonly expiredAt: Time;
    readonly budgets: readonly BudgetPlace[];
  }
>;
export type ReservationExtended = EventOf<
  'ReservationExtended',
  {
    readonly reservationId: string;
    readonly requestId: string;
    readonly attempt: number;
    readonly expiresAt: Time;
  }
>;

export type AlertKind =
  'budget_threshold' | 'unpriced_usage' | 'cost_mismatch' | 'duplicate_send' | 'too_many_buckets';
export type AlertRaised = EventOf<
  'AlertRaised',
  {
    readonly kind: AlertKind;
    /** Says which of its kind this is: the same key is never raised twice. */
    readonly key: string;
    readonly detail: string;
    readonly budget?: string;
    readonly window?: BudgetPlace['window'];
    readonly bucket?: BudgetPlace['bucket'];
    readonly threshold?: number;
    readonly chargeId?: string;
    readonly reservationId?: string;
  }
>;

/** Everything that can stand in a ledger's stream. */
export type LedgerEvent =
  | LedgerOpened
  | SettingsChanged
  | BudgetDefined
  | BudgetAmended
  | BudgetRetired
  | PriceListed
  | PriceSet
  | PriceRetired
  | SpendEstimated
  | SpendReserved
  | SpendRefused
  | UsageCharged
  | ChargeCorrected
  | ReservationReleased
  | ReservationExpired
  | ReservationExtended
  | AlertRaised;
export type EventType = LedgerEvent['type'];

export interface Metadata {
  readonly correlationId: string;
  readonly causationId: string;
  readonly actor: string;
  readonly traceparent?: string;
  /** Hex hash of the event before; 64 zeros for the first. */
  readonly previousHash: string;
  readonly hash: string;
}

/** The envelope around every event in the log (DESIGN 4). */
export type Recorded<E extends LedgerEvent = LedgerEvent> = E & {
  readonly id: string;
  readonly schemaVersion: number;
  readonly ledger: string;
  /** Contiguous from 0. */
  readonly revision: number;
  readonly at: Time;
  readonly metadata: Metadata;
};

export type { RatesText };
