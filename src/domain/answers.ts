import type { Account } from './attempt';
import type { BudgetBalance, BudgetDefinition } from './budget';
import type { Quality, Reason, RefusalCode } from './events';
import type { Price } from './prices';
import type { Settings } from './settings';

/** Amounts are decimal USD strings, times RFC 3339 UTC, `position` the revision of the event that answers. */
export interface EstimateAnswer {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly amount?: string;
}

export interface CheckAllowed {
  readonly kind: 'check-allowed';
  readonly requestId: string;
  readonly attempt: number;
  readonly account: Account;
  readonly model: string;
  readonly fallbackFrom?: { readonly account: Account; readonly model: string };
  /** Absent when only asked. */
  readonly reservation?: { readonly id: string; readonly amount: string; readonly expiresAt: string };
  readonly estimate: EstimateAnswer;
  readonly budgets: readonly BudgetBalance[];
  readonly skipped?: readonly Reason[];
  readonly warnings?: readonly Reason[];
  readonly wouldRefuse?: readonly Reason[];
  readonly unbudgeted?: true;
  readonly position: number;
}

export interface CheckRefused {
  readonly kind: 'check-refused';
  /** `reserve: false`: an answer, not a refusal (HTTP 200). */
  readonly advisory: boolean;
  readonly requestId: string;
  readonly attempt: number;
  readonly code: RefusalCode;
  readonly reasons: readonly Reason[];
  readonly estimate?: EstimateAnswer;
  readonly retryAt?: string;
  readonly nextAttempt?: number;
  readonly position: number;
}

export interface UsageRecorded {
  readonly kind: 'usage-recorded';
  readonly chargeId: string;
  readonly charged: string;
  readonly released: string;
  readonly overrun: string;
  readonly quality: Quality;
  readonly late?: true;
  readonly unpriced?: true;
  readonly position: number;
}

export interface ReservationEnded {
  readonly kind: 'reservation-released';
  readonly reservationId: string;
  readonly released: string;
  readonly position: number;
}
export interface ReservationProlonged {
  readonly kind: 'reservation-extended';
  readonly reservationId: string;
  readonly expiresAt: string;
  readonly position: number;
}
export interface ChargeCorrectedAnswer {
  readonly kind: 'charge-corrected';
  readonly chargeId: string;
  readonly charged: string;
  readonly previous: string;
  readonly position: number;
}
export interface SettingsAnswer {
  readonly kind: 'settings';
  readonly settings: Settings;
  /** This command opened the ledger. */
  readonly opened?: true;
  readonly position: number;
}
export interface BudgetAnswer {
  readonly kind: 'budget';
  readonly budget: BudgetDefinition;
  readonly generation: number;
  readonly position: number;
}
export interface BudgetRetiredAnswer {
  readonly kind: 'budget-retired';
  readonly id: string;
  readonly position: number;
}
export interface PriceAnswer {
  readonly kind: 'price';
  readonly price: Price;
  readonly position: number;
}
export interface PriceRetiredAnswer {
  readonly kind: 'price-retired';
  readonly provider: string;
  readonly model: string;
  readonly position: number;
}
export interface ExpiredAnswer {
  readonly kind: 'expired';
  readonly count: number;
  /** Whether more is due than the limit let through. */
  readonly more: boolean;
  readonly position: number;
}

export type Answer =
  | CheckAllowed
  | CheckRefused
  | UsageRecorded
  | ReservationEnded
  | ReservationProlonged
  | ChargeCorrectedAnswer
  | SettingsAnswer
  | BudgetAnswer
  | BudgetRetiredAnswer
  | PriceAnswer
  | PriceRetiredAnswer
  | ExpiredAnswer;
