import type { Recorded } from '../domain/events';
import type { WriterLog } from './options';
import { RecentEvents } from './recent-events';

/** Told of confirmed events, decoded, in order, without gap: this process's own and those of others. */
export type ConfirmedListener = (events: readonly Recorded[]) => void;

interface Waiter {
  readonly revision: number;
  readonly tell: () => void;
}

/** Where confirmed events go. What a listener throws is its own affair. */
export class Confirmations {
  readonly recent: RecentEvents;
  private readonly listeners = new Set<ConfirmedListener>();
  private readonly waiters = new Set<Waiter>();
  private revision = -1;

  constructor(
    capacity: number,
    private readonly log: WriterLog,
  ) {
    this.recent = new RecentEvents(capacity);
  }

  listen(listener: ConfirmedListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The ledger was loaded up to here: what came before is told to nobody. */
  begin(revision: number): void {
    this.moveTo(revision);
  }

  /** Read while loading: kept for feeds and replays, told to nobody. */
  recall(events: readonly Recorded[]): void {
    this.recent.push(events);
    const last = events.at(-1);
    if (last) this.moveTo(last.revision);
  }

  tell(events: readonly Recorded[]): void {
    const last = events.at(-1);
    if (!last) return;
    this.recent.push(events);
    for (const listener of this.listeners) {
      try {
        listener(events);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        this.log.warn('a listener to confirmed events failed', {
          ledger: last.ledger,
          message,
        });
      }
    }
    this.moveTo(last.revision);
  }

  /** True once the revision is confirmed here; false after the time-out. */
  waitFor(revision: number, timeoutMs: number): Promise<boolean> {
    if (this.revision >= revision) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (seen: boolean): void => {
        clearTimeout(timer);
        this.waiters.delete(waiter);
        resolve(seen);
      };
      const waiter: Waiter = {
        revision,
        tell: () => {
          end(true);
        },
      };
      const timer = setTimeout(end, timeoutMs, false);
      this.waiters.add(waiter);
    });
  }

  private moveTo(revision: number): void {
    this.revision = revision;
    for (const waiter of this.waiters) if (waiter.revision <= revision) waiter.tell();
  }
}
