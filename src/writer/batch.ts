import type { Recorded } from '../domain/events';
import type { SealedEvent } from '../event-store/event-store';
import type { Pending } from './pending';

/** Commands decided one upon another, and the events they give: one append. */
export class Batch {
  readonly commands: Pending[] = [];
  readonly events: SealedEvent[] = [];
  readonly recorded: Recorded[] = [];
  bytes = 0;
  /** Takes no more. */
  closed = false;
  /** Monotonic ms. */
  sentAt = 0;

  constructor(
    /** The revision it is judged upon: the expected one of its append. */
    readonly baseRevision: number,
    readonly baseHash: string,
    /** The `at` of all its events. */
    readonly atMs: number,
    /** How far the predecessor is ahead of the clock, where that is too far for checks; else 0. */
    readonly skewMs: number,
    /** Where its section of the journal begins. */
    public mark: number,
    readonly alone: boolean,
    readonly suspect: boolean,
  ) {}

  /** Whether a command may join it. */
  admits(pending: Pending, maxCommands: number): boolean {
    if (this.closed || this.commands.length >= maxCommands) return false;
    return this.commands.length === 0 || (!this.alone && !pending.alone && this.suspect === pending.suspect);
  }
}
