import type { StateRequest } from './state-at';
import type { StateView } from './state-view';
import type { Verification } from './verify';

/** What the worker is asked, one at a time. */
export type HistoryJob =
  ({ readonly kind: 'state' } & StateRequest) | { readonly kind: 'verify'; readonly ledger: string };

export interface HistoryResults {
  readonly state: StateView;
  readonly verify: Verification;
}

/** What it answers. */
export type HistoryReply =
  | { readonly kind: 'done'; readonly result: StateView | Verification }
  | { readonly kind: 'failed'; readonly message: string };

/** Where it connects to. */
export interface HistoryDatabase {
  readonly url: string;
  readonly schema: string;
}
