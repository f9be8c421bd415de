import type { EventStore } from '../event-store/event-store';
import { AppendRefusedError, StoreUnavailableError } from '../event-store/event-store';
import type { Batch } from './batch';
import { jittered } from './options';
import type { LedgerClock, Timers, WriterLog, WriterOptions } from './options';
import { pause } from './pause';

export type Fate =
  | { readonly kind: 'stored' }
  /** Others wrote first. Nothing of the batch is in the log. */
  | { readonly kind: 'lost' }
  /** The log does not take what is in it. Nothing of it was stored. */
  | { readonly kind: 'refused'; readonly error: Error }
  /** Nothing was stored. */
  | { readonly kind: 'unavailable'; readonly error: Error }
  /** The writer was closed before it was known. */
  | { readonly kind: 'unknown' };

const STORED: Fate = { kind: 'stored' };
const LOST: Fate = { kind: 'lost' };

/** Stores batches of one ledger, and does not rest before it knows what became of them. */
export class Appender {
  constructor(
    private readonly ledger: string,
    private readonly store: EventStore,
    private readonly clock: LedgerClock,
    private readonly timers: Timers,
    private readonly log: WriterLog,
    private readonly options: WriterOptions,
    private readonly signal: AbortSignal,
  ) {}

  /** `onUnknown` is called once, when the outcome of the first try is not known. */
  async append(batch: Batch, onUnknown: () => void): Promise<Fate> {
    try {
      return (await this.tryAppend(batch)) ? STORED : LOST;
    } catch (error) {
      if (error instanceof AppendRefusedError) return { kind: 'refused', error };
      if (error instanceof StoreUnavailableError) return { kind: 'unavailable', error };
      // Anything else may have been thrown after the store had it: never taken for "nothing was stored".
      const message = error instanceof Error ? error.message : String(error);
      const { ledger } = this;
      this.log.warn('nobody knows whether a batch was stored', {
        ledger,
        at: batch.baseRevision,
        message,
      });
      onUnknown();
      return this.find(batch);
    }
  }

  private async tryAppend(batch: Batch): Promise<boolean> {
    const sentAt = performance.now();
    const result = await this.store.append(this.ledger, batch.baseRevision, batch.events);
    if (result.kind === 'conflict') return false;
    if (result.storeTime !== undefined) this.clock.observe(result.storeTime, sentAt);
    return true;
  }

  /**
   * The same bytes again, at the same expected revision, until it is known. A commit whose connection was lost can
   * become visible more than a second later, so that not seeing it proves nothing: only an append that succeeds, or
   * other events in its place, do.
   */
  private async find(batch: Batch): Promise<Fate> {
    const { outagePauseMs, outagePauseCapMs } = this.options;
    for (let attempt = 0; ; attempt += 1) {
      await pause(jittered(attempt, outagePauseMs, outagePauseCapMs), this.timers, this.signal);
      if (this.signal.aborted) return { kind: 'unknown' };
      let refused: Error | undefined;
      try {
        if (await this.tryAppend(batch)) return STORED;
      } catch (error) {
        if (!(error instanceof AppendRefusedError)) continue;
        refused = error;
      }
      const fate = await this.compare(batch).catch(() => 'unreadable' as const);
      if (typeof fate === 'object') return fate;
      // Nothing stands in its place, and what the store refuses now it refused the first time too.
      if (refused && fate === 'absent') return { kind: 'refused', error: refused };
    }
  }

  /** Whose events stand where the batch belongs. */
  private async compare(batch: Batch): Promise<Fate | 'absent' | 'unreadable'> {
    const { events, baseRevision } = batch;
    const found = await this.store.read(this.ledger, {
      from: baseRevision + 1,
      limit: events.length,
    });
    if (found.length === 0) return 'absent';
    if (found[0]?.id !== events[0]?.id) return LOST;
    return found.length === events.length && found.every(({ id }, i) => id === events[i]?.id)
      ? STORED
      : 'unreadable';
  }
}
