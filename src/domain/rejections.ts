/**
 * Why a command cannot be accepted. A rejection records nothing. HTTP maps each code to a status in one table
 * (`http/problems`). A refused check is not a rejection: it is a decision, and an event.
 */
export type Rejection =
  | { readonly code: 'idempotency_conflict'; readonly detail: string; readonly nextAttempt?: number }
  | {
      readonly code: 'reservation_ended';
      readonly detail: string;
      readonly state: ReservationStateName;
      readonly nextAttempt?: number;
    }
  | { readonly code: 'reservation_not_found'; readonly detail: string }
  | { readonly code: 'charge_not_found'; readonly detail: string }
  | { readonly code: 'budget_not_found'; readonly detail: string }
  | { readonly code: 'price_not_found'; readonly detail: string }
  | { readonly code: 'ledger_not_found'; readonly detail: string }
  | { readonly code: 'ledger_not_open'; readonly detail: string }
  | { readonly code: 'timezone_fixed'; readonly detail: string }
  | { readonly code: 'history_too_long'; readonly detail: string }
  | { readonly code: 'clock_skew'; readonly detail: string; readonly retryAfterSeconds: number }
  | {
      readonly code: 'invalid';
      readonly detail: string;
      readonly faults: readonly { readonly path: string; readonly message: string }[];
    };

export type RejectionCode = Rejection['code'];

export type ReservationStateName =
  'held' | 'assumed' | 'unconfirmed' | 'confirmed' | 'released' | 'expired-released';
