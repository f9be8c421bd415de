import type { Recorded } from '../domain/events';
import { EMPTY } from '../event-store/event-store';
import type { EventStore, StoredEvent } from '../event-store/event-store';
import type { Confirmations } from './confirmations';
import type { Decider } from './decider';
import { DivergedError } from './speculation';
import type { Confirmed, Speculation } from './speculation';

/** The end of a ledger's log as this process knows it: reads and applies what others put there. */
export class LogTail {
  /** When (monotonic) it was last certain that the log ends at the confirmed revision. */
  provenAt = Number.NEGATIVE_INFINITY;
  /** When (monotonic) another process was last seen writing. */
  rivalSeenAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly ledger: string,
    private readonly speculation: Speculation,
    private readonly store: EventStore,
    private readonly decider: Decider,
    private readonly confirmations: Confirmations,
    private readonly pageEvents: number,
  ) {}

  get confirmed(): Confirmed {
    return this.speculation.confirmed;
  }

  /** Whether nothing was stored after the confirmed revision. Throws DivergedError. */
  async isAtEnd(): Promise<boolean> {
    return (await this.newer(1)).length === 0;
  }

  /** Reads to the end when loading: what is found is told to nobody. */
  async load(): Promise<void> {
    await this.read((events) => {
      this.confirmations.recall(events);
    });
  }

  /** Reads what others have stored. Throws DivergedError where it does not continue what is known. */
  async catchUp(): Promise<void> {
    await this.read((events) => {
      this.rivalSeenAt = performance.now();
      this.confirmations.tell(events);
    });
  }

  /** Takes in events that somebody else has read. Throws DivergedError. */
  adopt(page: readonly StoredEvent[]): void {
    const events = page.map(({ bytes }) => this.decider.decode(bytes));
    this.speculation.adopt(events);
    this.rivalSeenAt = performance.now();
    this.confirmations.tell(events);
  }

  private async read(tell: (events: readonly Recorded[]) => void): Promise<void> {
    for (;;) {
      const askedAt = performance.now();
      const page = await this.newer(this.pageEvents);
      const events = page.map(({ bytes }) => this.decider.decode(bytes));
      this.speculation.adopt(events);
      if (events.length > 0) tell(events);
      if (page.length < this.pageEvents) {
        this.provenAt = askedAt;
        return;
      }
    }
  }

  /**
   * The page after the confirmed revision, read together with the event there: a log that was set back (restored
   * from a backup) must not go unnoticed.
   */
  private async newer(limit: number): Promise<StoredEvent[]> {
    const { revision, hash } = this.confirmed;
    if (revision === EMPTY) return this.store.read(this.ledger, { from: 0, limit });
    const [known, ...newer] = await this.store.read(this.ledger, {
      from: revision,
      limit: limit + 1,
    });
    if (known?.revision !== revision || this.decider.decode(known.bytes).metadata.hash !== hash) {
      throw new DivergedError(`event ${revision} of ${this.ledger} is no longer in its log`);
    }
    return newer;
  }
}
