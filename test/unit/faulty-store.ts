import {
  AppendRefusedError,
  StoreUnavailableError,
  UnknownOutcomeError,
} from '../../src/event-store/event-store';
import type {
  AppendResult,
  EventStore,
  ReadOptions,
  SealedEvent,
  StoredEvent,
  StreamHead,
  SubscribeOptions,
} from '../../src/event-store/event-store';

export type Fault =
  /** Nobody knows, and nothing was stored. */
  | 'time-out before commit'
  /** Nobody knows, and it was stored. */
  | 'time-out after commit'
  /** Nobody knows; it becomes visible only when somebody appends again. */
  | 'late commit'
  | 'unavailable'
  | 'read unavailable'
  /** Somebody else comes first: `intruder` runs before the append. */
  | 'intruder';

/** A store that does what a test asks of it to the next calls, and what its inner store does otherwise. */
export class FaultyStore implements EventStore {
  /** One for each coming append; when it is empty all goes well. */
  readonly faults: Fault[] = [];
  /** Every append that reached the store: how many events, and how they were told. */
  readonly appends: {
    readonly events: readonly SealedEvent[];
    result: 'appended' | 'conflict' | 'failed';
  }[] = [];
  reads = 0;
  intruder: () => Promise<void> = () => Promise.resolve();
  refuses: (event: SealedEvent) => boolean = () => false;
  private gate: Promise<void> | undefined;
  private held = 0;
  private readonly watching: (() => void)[] = [];
  private late: (() => Promise<unknown>) | undefined;

  constructor(private inner: EventStore) {}

  /** Another log in the place of this one, as after a restore from a backup. */
  swap(inner: EventStore): void {
    this.inner = inner;
  }

  /** Appends from now on wait until the returned function is called. */
  hold(): () => void {
    let release: () => void = () => undefined;
    this.gate = new Promise((resolve) => {
      release = () => {
        this.gate = undefined;
        resolve();
      };
    });
    return release;
  }

  /** Resolves once so many appends wait at the gate. */
  async untilHeld(count = 1): Promise<void> {
    while (this.held < count) await new Promise<void>((resolve) => this.watching.push(resolve));
  }

  async append(
    ledger: string,
    expectedRevision: number,
    events: readonly SealedEvent[],
  ): Promise<AppendResult> {
    const entry: FaultyStore['appends'][number] = { events, result: 'failed' };
    this.appends.push(entry);
    if (this.gate) {
      this.held += 1;
      for (const tell of this.watching.splice(0)) tell();
      await this.gate;
      this.held -= 1;
    }
    await this.late?.();
    this.late = undefined;
    if (events.some((event) => this.refuses(event))) throw new AppendRefusedError('not this one');
    const store = () => this.inner.append(ledger, expectedRevision, events);
    switch (this.faults.shift()) {
      case 'time-out before commit':
        throw new UnknownOutcomeError('time-out');
      case 'time-out after commit':
        await store();
        throw new UnknownOutcomeError('time-out');
      case 'late commit':
        this.late = store;
        throw new UnknownOutcomeError('time-out');
      case 'unavailable':
        throw new StoreUnavailableError('no connection');
      case 'intruder':
        await this.intruder();
        break;
      default:
    }
    const result = await store();
    entry.result = result.kind;
    return result;
  }

  async read(ledger: string, options?: ReadOptions): Promise<StoredEvent[]> {
    this.reads += 1;
    if (this.faults[0] === 'read unavailable') {
      this.faults.shift();
      throw new StoreUnavailableError('no connection');
    }
    return this.inner.read(ledger, options);
  }

  head(ledger: string): Promise<StreamHead | undefined> {
    return this.inner.head(ledger);
  }

  revisionAt(ledger: string, atMs: number): Promise<number> {
    return this.inner.revisionAt(ledger, atMs);
  }

  subscribe(ledger: string, options: SubscribeOptions): AsyncIterable<StoredEvent[]> {
    return this.inner.subscribe(ledger, options);
  }

  wake(ledger: string): void {
    this.inner.wake(ledger);
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
