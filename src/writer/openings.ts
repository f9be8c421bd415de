import type { EventStore } from '../event-store/event-store';
import type { Batch } from './batch';
import type { Decider } from './decider';
import { OpeningFolding } from './opening-folding';
import type { WriterLog, WriterOptions } from './options';
import type { Pending } from './pending';
import type { RecentEvents } from './recent-events';
import type { Speculation } from './speculation';
import { unavailable } from './failures';

interface Host {
  confirmedRevision(): number;
  /** The fold is near the end: the command may be decided next, when nothing is in flight. */
  proceed(pending: Pending): void;
  /** One command less is waited for. */
  ended(): void;
}

/** Budget definitions whose history is being folded while other commands go on. */
export class Openings {
  private readonly folding = new Set<Pending>();
  private epoch = 0;

  constructor(
    private readonly ledger: string,
    private readonly store: EventStore,
    private readonly recent: RecentEvents,
    private readonly decider: Decider,
    private readonly log: WriterLog,
    private readonly options: WriterOptions,
    private readonly host: Host,
  ) {}

  get size(): number {
    return this.folding.size;
  }

  /** Those whose callers wait. */
  pending(): Iterable<Pending> {
    return this.folding;
  }

  begin(pending: Pending, fromMs: number, batch: Batch, { state }: Speculation): void {
    const { command } = pending;
    if (command.type !== 'DefineBudget' || pending.opening) {
      pending.fail(new Error(`${command.type} asks for history again`));
      return;
    }
    const { ledger, decider, store, options } = this;
    const { atMs } = batch;
    const fold = decider.opening(command.budget, state, atMs);
    const { epoch } = this;
    const opening = new OpeningFolding(ledger, fold, fromMs, epoch, decider, store, options.pageEvents);
    void this.approach(pending, opening);
  }

  /** The log turned out to be another: what was folded so far is worth nothing. */
  startOver(): void {
    this.epoch += 1;
  }

  /** Brings a fold to exactly the confirmed revision; if memory no longer reaches back, it must read again first. */
  finish(pending: Pending, opening: OpeningFolding): boolean {
    if (opening.epoch !== this.epoch) {
      // Decided without it, the command asks for history again.
      pending.opening = undefined;
      return true;
    }
    if (opening.finish(this.recent, this.host.confirmedRevision())) return true;
    pending.opening = undefined;
    void this.approach(pending, opening);
    return false;
  }

  private async approach(pending: Pending, opening: OpeningFolding): Promise<void> {
    this.folding.add(pending);
    const { openingLimitMs } = this.options;
    try {
      const near = await opening.approach(
        this.recent,
        () => this.host.confirmedRevision(),
        openingLimitMs,
        () => !pending.settled,
      );
      if (near) {
        pending.opening = opening;
        this.host.proceed(pending);
      } else {
        const detail = `counting what was already spent takes longer than ${openingLimitMs} ms; countFrom "now" starts at zero`;
        pending.answer({
          kind: 'rejected',
          rejection: { code: 'history_too_long', detail },
        });
      }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.log.warn('history for a budget cannot be read', {
        ledger: this.ledger,
        reason,
      });
      pending.fail(unavailable('the log cannot be read'));
    }
    this.folding.delete(pending);
    this.host.ended();
  }
}
