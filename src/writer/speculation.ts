import { randomBytes } from 'node:crypto';
import { v7 as uuid } from 'uuid';
import type { Recorded } from '../domain/events';
import { NO_JOURNAL, UndoJournal } from '../domain/journal';
import type { Catalogue } from '../domain/prices';
import type { LedgerState } from '../domain/state';
import { EMPTY } from '../event-store/event-store';
import { Batch } from './batch';
import { EVENT_SCHEMA_VERSION } from './decider';
import type { Decider } from './decider';
import type { Pending } from './pending';

export interface Confirmed {
  readonly revision: number;
  readonly hash: string;
  readonly atMs: number;
}

/** What came of a command offered to a batch. */
export type Verdict =
  | { readonly kind: 'taken' }
  /** Its events do not fit any more: it belongs into the next batch. */
  | { readonly kind: 'full' }
  /** It could not be decided; its caller was told. */
  | { readonly kind: 'failed' }
  | { readonly kind: 'needs-opening'; readonly fromMs: number };

const TAKEN: Verdict = { kind: 'taken' };
const FULL: Verdict = { kind: 'full' };
const FAILED: Verdict = { kind: 'failed' };

export const NO_HASH = '0'.repeat(64);

/** What is known of a ledger does not fit its log, or can no longer be trusted: it must be loaded anew. */
export class DivergedError extends Error {
  override readonly name = 'DivergedError';
}

/**
 * A ledger's state, with at most two batches on top of what is durable: one being stored, one being decided upon
 * it. Sections of one undo journal, so that either the newest or both can be taken back exactly.
 */
export class Speculation {
  private readonly journal = new UndoJournal();
  private readonly nonces = new Nonces();
  /** Of the last event in the state, durable or not. */
  private hash: string;

  constructor(
    private readonly ledger: string,
    readonly state: LedgerState,
    private durable: Confirmed,
    private readonly decider: Decider,
    private readonly catalogue: Catalogue,
  ) {
    this.hash = durable.hash;
  }

  get confirmed(): Confirmed {
    return this.durable;
  }

  /** Nothing speculative is in the state. */
  get isClean(): boolean {
    return this.journal.length === 0 && this.state.revision === this.durable.revision;
  }

  /** Begins a batch. All of it happens at one moment: the clock's, but never before the predecessor's. */
  begin(nowMs: number, maxSkewMs: number, first: Pending): Batch {
    const { state } = this;
    const skewMs = state.at - nowMs > maxSkewMs ? state.at - nowMs : 0;
    const atMs = Math.max(nowMs, state.at);
    const { alone, suspect } = first;
    const batch = new Batch(state.revision, this.hash, atMs, skewMs, this.journal.length, alone, suspect);
    this.decider.advance(state, atMs, this.journal);
    return batch;
  }

  /** Decides a command on the state with everything before it, and applies its events. */
  judge(batch: Batch, pending: Pending, maxBytes: number): Verdict {
    pending.decision = undefined;
    const { command } = pending;
    if (this.state.revision === EMPTY && command.type !== 'OpenLedger') {
      return take(batch, pending, {
        code: 'ledger_not_found',
        detail: `no ledger ${this.ledger}`,
      });
    }
    if (batch.skewMs > 0 && command.type === 'CheckBudget') {
      const retryAfterSeconds = Math.min(60, Math.ceil(batch.skewMs / 1000));
      const detail = `the ledger's last event is ${batch.skewMs} ms ahead of the clock`;
      return take(batch, pending, {
        code: 'clock_skew',
        detail,
        retryAfterSeconds,
      });
    }
    const mark = this.journal.length;
    const events = batch.events.length;
    const { hash } = this;
    try {
      const verdict = this.decide(batch, pending, maxBytes);
      if (verdict === FULL) this.takeBack(batch, mark, events, hash);
      return verdict;
    } catch (error) {
      this.takeBack(batch, mark, events, hash);
      pending.fail(error instanceof Error ? error : new Error(String(error)));
      return FAILED;
    }
  }

  private decide(batch: Batch, pending: Pending, maxBytes: number): Verdict {
    const decision = this.decider.decide(pending.command, this.state, {
      nowMs: batch.atMs,
      catalogue: this.catalogue,
      nonce: this.nonces.next(),
      ...(pending.opening && { opening: pending.opening.result(batch.atMs) }),
    });
    if (decision.kind === 'needs-opening') return decision;
    if (decision.kind === 'accepted') {
      const before = batch.bytes;
      for (const event of decision.events) this.record(batch, event, pending);
      if (batch.bytes > maxBytes && before > 0) return FULL;
    }
    pending.decision = decision;
    batch.commands.push(pending);
    return TAKEN;
  }

  private record(batch: Batch, event: Parameters<Decider['evolve']>[1], { origin }: Pending): void {
    const revision = this.state.revision + 1;
    const { sealed, recorded, hash } = this.decider.seal({
      id: uuid(),
      event,
      schemaVersion: EVENT_SCHEMA_VERSION,
      ledger: this.ledger,
      revision,
      atMs: batch.atMs,
      correlationId: origin.correlationId,
      causationId: origin.causationId,
      actor: origin.actor,
      traceparent: origin.traceparent,
      previousHash: this.hash,
    });
    this.decider.evolve(this.state, recorded, { revision, atMs: batch.atMs }, this.journal);
    this.hash = hash;
    batch.events.push(sealed);
    batch.recorded.push(recorded);
    batch.bytes += sealed.bytes.length;
  }

  /** Takes back one command of the newest batch. */
  private takeBack(batch: Batch, mark: number, events: number, hash: string): void {
    this.journal.undoTo(mark);
    this.hash = hash;
    for (const sealed of batch.events.splice(events)) batch.bytes -= sealed.bytes.length;
    batch.recorded.length = events;
  }

  /** Takes back the newest batch, with the time it let pass. */
  undo(batch: Batch): void {
    this.journal.undoTo(batch.mark);
    this.hash = batch.baseHash;
  }

  /** Takes back everything that is not durable. */
  undoAll(): void {
    this.journal.undoTo(0);
    this.hash = this.durable.hash;
  }

  /** The older batch is stored; `next` was decided upon it. */
  confirm(batch: Batch, next: Batch | undefined): void {
    this.journal.forget(next ? next.mark : this.journal.length);
    if (next) next.mark = 0;
    const last = batch.events.at(-1);
    const recorded = batch.recorded.at(-1);
    if (last && recorded) {
      this.durable = {
        revision: last.revision,
        hash: recorded.metadata.hash,
        atMs: last.at,
      };
    }
  }

  /** Applies events that others stored. Throws DivergedError where they do not continue what is known. */
  adopt(events: readonly Recorded[]): void {
    if (!this.isClean) throw new Error('events of others came upon undecided ones');
    for (const event of events) {
      const { revision, hash } = this.durable;
      if (event.revision !== revision + 1 || event.metadata.previousHash !== hash) {
        throw new DivergedError(`event ${event.revision} of ${this.ledger} does not continue ${revision}`);
      }
      const atMs = Date.parse(event.at);
      try {
        this.decider.evolve(this.state, event, { revision: event.revision, atMs }, NO_JOURNAL);
      } catch (error) {
        // Half of it may be in the state, and there is no journal to take it back.
        throw new DivergedError(`event ${event.revision} of ${this.ledger} cannot be applied`, {
          cause: error,
        });
      }
      this.durable = {
        revision: event.revision,
        hash: event.metadata.hash,
        atMs,
      };
      this.hash = event.metadata.hash;
    }
  }
}

type Rejected = Extract<Pending['decision'], { kind: 'rejected' }>;

function take(batch: Batch, pending: Pending, rejection: Rejected['rejection']): Verdict {
  pending.decision = { kind: 'rejected', rejection };
  batch.commands.push(pending);
  return TAKEN;
}

const NONCE_BYTES = 6;

/** Random, from a pool: a call into OpenSSL for each command costs more than all else about it. */
class Nonces {
  private pool = '';
  private used = 0;

  next(): string {
    if (this.used >= this.pool.length) {
      this.pool = randomBytes(NONCE_BYTES * 1_024).toString('hex');
      this.used = 0;
    }
    this.used += NONCE_BYTES * 2;
    return this.pool.slice(this.used - NONCE_BYTES * 2, this.used);
  }
}
