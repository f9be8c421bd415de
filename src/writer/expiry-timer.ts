import type { ExpireDue } from '../domain/commands';
import type { Timers, WriterOptions } from './options';
import type { CommandOutcome } from './submission';

export interface ExpirySource {
  isDue(): boolean;
  expire(command: ExpireDue): Promise<CommandOutcome>;
}

/**
 * Has what is due booked, about once a second, in appends of its own. Every process may do it: whoever comes second
 * meets a conflict, and then finds nothing due.
 */
export class ExpiryTimer {
  private cancel: (() => void) | undefined;
  private stopped = true;

  constructor(
    private readonly timers: Timers,
    private readonly options: WriterOptions,
    private readonly source: ExpirySource,
  ) {}

  /** Looks at once, and then again and again. */
  start(): void {
    if (!this.stopped) return;
    this.stopped = false;
    this.next(0);
  }

  stop(): void {
    this.stopped = true;
    this.cancel?.();
  }

  private next(afterMs: number): void {
    if (this.stopped) return;
    this.cancel = this.timers.background(afterMs, () => {
      void this.look();
    });
  }

  private async look(): Promise<void> {
    let more = false;
    if (this.source.isDue()) {
      try {
        const outcome = await this.source.expire({
          type: 'ExpireDue',
          limit: this.options.expiryLimit,
        });
        more = outcome.kind === 'answered' && outcome.answer.kind === 'expired' && outcome.answer.more;
      } catch {
        // The log is not to be had; what is due stays due.
      }
    }
    // Processes that look in step would only collide.
    this.next(more ? 0 : this.options.expiryEveryMs * (0.9 + Math.random() * 0.2));
  }
}
