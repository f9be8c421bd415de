import type { Answer } from './answers';
import type { OpeningBalance } from './budget';
import type { LedgerEvent } from './events';
import type { Catalogue } from './prices';
import type { Rejection } from './rejections';

/** What `decide` may know beside the state. Handed in, so that the domain reads no clock and no randomness. */
export interface Context {
  /** The store's time, ms since epoch. */
  readonly nowMs: number;
  readonly catalogue: Catalogue;
  /** Random, new for every decision, `[0-9a-f]{12}`: part of the ids the decision mints. */
  readonly nonce: string;
  /** What history already counts against a budget that is being defined; see `needs-opening`. */
  readonly opening?: readonly OpeningBalance[];
}

export type Decision =
  /** Append these; once they are durable the answer may leave. */
  | { readonly kind: 'accepted'; readonly events: readonly LedgerEvent[]; readonly answer: Answer }
  /** Decided before: `answerFrom(event at this revision)` is the answer, marked as replayed. */
  | { readonly kind: 'replay'; readonly revision: number }
  /** Nothing to record. */
  | { readonly kind: 'unchanged'; readonly answer: Answer }
  | { readonly kind: 'rejected'; readonly rejection: Rejection }
  /**
   * A budget defined in the middle of its window: decide again with `context.opening`, folded by `OpeningFold`
   * from the first event at or after `fromMs` up to exactly the state's revision.
   */
  | { readonly kind: 'needs-opening'; readonly fromMs: number };
