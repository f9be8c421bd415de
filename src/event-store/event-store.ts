/**
 * The log as a port. One stream a ledger, revisions contiguous from 0. Adapters store the sealed bytes as they
 * are and know nothing of what they mean. One contract suite (`test/contract`) runs over every adapter.
 */

/** An event with its exact bytes: canonical JSON (RFC 8785) of the envelope, hash included. */
export interface SealedEvent {
  readonly id: string;
  readonly type: string;
  readonly revision: number;
  /** ms since epoch; never below the event before it. */
  readonly at: number;
  readonly bytes: Buffer;
}

export type StoredEvent = SealedEvent;

/** The revision before the first event. */
export const EMPTY = -1;

export type AppendResult =
  | {
      readonly kind: 'appended';
      /** The store's clock at the append, ms since epoch, where it has one. */ readonly storeTime?: number;
    }
  /** The stream does not stand at the expected revision. Nothing of the batch was stored by this call. */
  | { readonly kind: 'conflict' };

/** Nobody knows whether the batch was stored: time-out, lost connection. Resolve by appending the same bytes again. */
export class UnknownOutcomeError extends Error {
  override readonly name = 'UnknownOutcomeError';
}
/** The store cannot be reached or refuses to work; certainly nothing was stored. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
}
/** The store refuses this batch for what is in it (neither conflict nor connection); nothing was stored. */
export class AppendRefusedError extends Error {
  override readonly name = 'AppendRefusedError';
}

export interface StreamHead {
  readonly revision: number;
  readonly at: number;
}

export interface ReadOptions {
  /** First revision, inclusive; backwards: the revision to start from, inclusive (default: the head). */
  readonly from?: number;
  readonly direction?: 'forwards' | 'backwards';
  /** At most this many events. */
  readonly limit?: number;
}

export interface SubscribeOptions {
  /** The first revision wanted. */
  readonly from: number;
  readonly signal: AbortSignal;
  /** Events a batch at most; default 1,000. */
  readonly batchSize?: number;
  /** Tells of a lost connection and of its recovery; the subscription goes on by itself. */
  readonly onState?: (state: 'live' | 'catching-up' | 'lost', error?: unknown) => void;
}

export interface EventStore {
  /**
   * Appends all of `events` or none, if and only if the stream stands at `expectedRevision` (EMPTY for a new
   * one). `events[i].revision` is expectedRevision + 1 + i.
   *
   * Appending a byte-identical batch again at the same expected revision is harmless: 'conflict' is returned and
   * the caller compares ids at those revisions (`writer/` does). Throws UnknownOutcomeError, StoreUnavailableError,
   * AppendRefusedError.
   */
  append(ledger: string, expectedRevision: number, events: readonly SealedEvent[]): Promise<AppendResult>;

  /** One page, in the direction's order. An unknown stream is empty. */
  read(ledger: string, options?: ReadOptions): Promise<StoredEvent[]>;

  head(ledger: string): Promise<StreamHead | undefined>;

  /** The first revision whose event is at or after the moment (ms), or head + 1. */
  revisionAt(ledger: string, atMs: number): Promise<number>;

  /**
   * Everything from a revision on, in order, without gap or duplicate, then live; ends only with the signal.
   * Backpressure is the consumer's pace. A lost connection is reported and resumed.
   */
  subscribe(ledger: string, options: SubscribeOptions): AsyncIterable<StoredEvent[]>;

  /** Wakes this process's and other processes' subscriptions: called after a confirmed append, outside of it. */
  wake(ledger: string): void;

  close(): Promise<void>;
}
