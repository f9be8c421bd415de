import type { Answer } from '../domain/answers';
import type { Recorded } from '../domain/events';
import type { EventStore } from '../event-store/event-store';
import type { Decider } from './decider';
import type { Pending } from './pending';
import type { RecentEvents } from './recent-events';
import { LogUnavailableError, OverloadedError } from './submission';

const READS_AT_ONCE = 4;
const MAX_WAITING = 10_000;

interface Replay {
  readonly pending: Pending;
  readonly revision: number;
}

/** Gives callers their answers, once everything these were judged on is durable. */
export class Replies {
  private readonly waiting: Replay[] = [];
  private reading = 0;

  constructor(
    private readonly ledger: string,
    private readonly store: EventStore,
    private readonly recent: RecentEvents,
    private readonly decider: Decider,
    private readonly onIdle: () => void,
  ) {}

  get open(): number {
    return this.waiting.length + this.reading;
  }

  deliver(commands: readonly Pending[]): void {
    for (const pending of commands) {
      const { decision } = pending;
      switch (decision?.kind) {
        case 'accepted':
        case 'unchanged':
          pending.answer({
            kind: 'answered',
            answer: decision.answer,
            replayed: false,
          });
          break;
        case 'rejected':
          pending.answer({ kind: 'rejected', rejection: decision.rejection });
          break;
        case 'replay':
          this.replay({ pending, revision: decision.revision });
          break;
        default:
          pending.fail(new Error('a command without a decision was confirmed'));
      }
    }
  }

  private replay(replay: Replay): void {
    if (replay.pending.settled) return;
    const event = this.recent.get(replay.revision);
    if (event) {
      this.tell(replay, event);
      return;
    }
    if (this.waiting.length >= MAX_WAITING) {
      replay.pending.fail(new OverloadedError(1, 'too many repeats wait for the log'));
      return;
    }
    this.waiting.push(replay);
    if (this.reading < READS_AT_ONCE) void this.read();
  }

  private async read(): Promise<void> {
    this.reading += 1;
    for (let replay = this.waiting.shift(); replay; replay = this.waiting.shift()) {
      try {
        const [stored] = await this.store.read(this.ledger, {
          from: replay.revision,
          limit: 1,
        });
        if (stored?.revision !== replay.revision) throw new Error(`no event at ${replay.revision}`);
        this.tell(replay, this.decider.decode(stored.bytes));
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        replay.pending.fail(
          new LogUnavailableError('none', 1, `the first answer cannot be read: ${message}`),
        );
      }
    }
    this.reading -= 1;
    if (this.open === 0) this.onIdle();
  }

  private tell({ pending }: Replay, event: Recorded): void {
    let answer: Answer;
    try {
      answer = this.decider.answerFrom(event);
    } catch (error) {
      pending.fail(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    pending.answer({ kind: 'answered', answer, replayed: true });
  }
}
