import type { Recorded } from '../domain/events';

/**
 * The last confirmed events of a ledger, by revision. It serves feeds and replays; a consumer that has fallen
 * behind it reads the log.
 */
export class RecentEvents {
  private readonly slots: (Recorded | undefined)[];
  private end = 0;
  private count = 0;

  constructor(readonly capacity: number) {
    this.slots = new Array<Recorded | undefined>(capacity).fill(undefined);
  }

  /** The oldest revision it still has; above `last` when it is empty. */
  get first(): number {
    return this.end - this.count;
  }

  /** −1 when it is empty. */
  get last(): number {
    return this.count === 0 ? -1 : this.end - 1;
  }

  get(revision: number): Recorded | undefined {
    if (revision < this.first || revision >= this.end) return undefined;
    return this.slots[revision % this.capacity];
  }

  /** At most `limit` events from a revision on; undefined where that is no longer here. */
  from(revision: number, limit: number): readonly Recorded[] | undefined {
    if (this.count === 0 || revision < this.first) return undefined;
    const events: Recorded[] = [];
    for (let at = revision; at < this.end && events.length < limit; at += 1) {
      const event = this.slots[at % this.capacity];
      if (event) events.push(event);
    }
    return events;
  }

  /** Only the writer puts events in; a gap (after a reload) begins anew. */
  push(events: readonly Recorded[]): void {
    for (const event of events) {
      if (event.revision !== this.end) this.count = 0;
      this.slots[event.revision % this.capacity] = event;
      this.end = event.revision + 1;
      this.count = Math.min(this.count + 1, this.capacity);
    }
  }
}
