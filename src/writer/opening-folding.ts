import type { OpeningBalance } from '../domain/budget';
import type { EventStore } from '../event-store/event-store';
import type { Decider, Opening } from './decider';
import type { RecentEvents } from './recent-events';

/** Usage may be recorded for a moment up to five minutes ahead of it (RULES 5). */
const AHEAD_MS = 300_000;
/** Events left to the end, when everybody waits. */
const NEAR = 256;

/**
 * Folds what history already counts against a budget that is defined in the middle of its window: the bulk while
 * other commands go on, the last few events when nothing is in flight, so that it is exact to the revision.
 */
export class OpeningFolding {
  /** The next revision to fold; unknown before the beginning was found. */
  private next: number | undefined;
  private tookMs = 0;

  constructor(
    private readonly ledger: string,
    private readonly fold: Opening,
    private readonly fromMs: number,
    /** Of the log as it was known: see `Openings.startOver`. */
    readonly epoch: number,
    private readonly decider: Decider,
    private readonly store: EventStore,
    private readonly pageEvents: number,
  ) {}

  /**
   * Reads the log up to where memory takes over, near the confirmed revision, which moves on meanwhile. False
   * where it took longer than `limitMs` in all, or `wanted` says that nobody waits any more.
   */
  async approach(
    recent: RecentEvents,
    confirmed: () => number,
    limitMs: number,
    wanted: () => boolean,
  ): Promise<boolean> {
    const before = this.tookMs;
    const started = performance.now();
    this.next ??= await this.store.revisionAt(this.ledger, Math.max(0, this.fromMs - AHEAD_MS));
    while (this.next <= confirmed() && !this.isNear(recent, confirmed())) {
      const page = await this.store.read(this.ledger, {
        from: this.next,
        limit: this.pageEvents,
      });
      if (page.length === 0) throw new Error(`the log of ${this.ledger} ends before ${confirmed()}`);
      for (const { bytes } of page) this.fold.apply(this.decider.decode(bytes));
      this.next += page.length;
      this.tookMs = before + performance.now() - started;
      if (this.tookMs > limitMs || !wanted()) return false;
    }
    return true;
  }

  /** Folds the last events, up to exactly the confirmed revision. False where memory no longer has them. */
  finish(recent: RecentEvents, confirmed: number): boolean {
    if (this.next === undefined) return false;
    while (this.next <= confirmed) {
      const event = recent.get(this.next);
      if (!event) return false;
      this.fold.apply(event);
      this.next += 1;
    }
    return true;
  }

  private isNear(recent: RecentEvents, confirmed: number): boolean {
    const next = this.next ?? 0;
    return recent.last >= confirmed && next >= recent.first && next + NEAR > confirmed;
  }

  result(atMs: number): OpeningBalance[] {
    return this.fold.result(atMs);
  }
}
