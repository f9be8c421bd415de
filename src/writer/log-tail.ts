import type { Recorded } from '../domain/events';
import type { EventStore, StoredEvent } from '../event-store/event-store';
import type { Confirmations } from './confirmations';
import type { Decider } from './decider';
import { DivergedError } from './speculation';
import type { Confirmed, Speculation } from './speculation';

/** Conflicts in a row with nothing to read behind them: the log ends before what is known of it. */
const MAX_EMPTY_CONFLICTS = 3;

/** The end of a ledger's log as this process knows it: reads and applies what others put there. */
export class LogTail {
  /** When (monotonic) it was last certain that the log ends at the confirmed revision. */
  provenAt = Number.NEGATIVE_INFINITY;
  /** When (monotonic) another process was last seen writing. */
  rivalSeenAt = Number.NEGATIVE_INFINITY;
  private emptyConflicts = 0;

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

  /** Whether nothing was stored after the confirmed revision. */
  async isAtEnd(): Promise<boolean> {
    const newer = await this.store.read(this.ledger, { from: this.confirmed.revision + 1, limit: 1 });
    return newer.length === 0;
  }

  /** Reads to the end when loading: what is found is told to nobody. */
  async load(): Promise<void> {
    await this.read((events) => {
      this.confirmations.recall(events);
    });
  }

  /** Reads what made an append conflict. Throws DivergedError where it cannot be explained. */
  async catchUp(): Promise<void> {
    const before = this.confirmed.revision;
    await this.read((events) => {
      this.rivalSeenAt = performance.now();
      this.confirmations.tell(events);
    });
    this.emptyConflicts = this.confirmed.revision === before ? this.emptyConflicts + 1 : 0;
    if (this.emptyConflicts >= MAX_EMPTY_CONFLICTS) {
      throw new DivergedError(`the log of ${this.ledger} ends before ${before}`);
    }
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
      const from = this.confirmed.revision + 1;
      const page = await this.store.read(this.ledger, { from, limit: this.pageEvents });
      const events = page.map(({ bytes }) => this.decider.decode(bytes));
      this.speculation.adopt(events);
      if (events.length > 0) tell(events);
      if (page.length < this.pageEvents) {
        this.provenAt = askedAt;
        return;
      }
    }
  }
}
