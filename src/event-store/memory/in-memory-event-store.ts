import { batchFault } from '../batch-fault';
import type {
  AppendResult,
  EventStore,
  ReadOptions,
  SealedEvent,
  StoredEvent,
  StreamHead,
  SubscribeOptions,
} from '../event-store';
import { followStream } from '../follow-stream';
import { WakeUps } from '../wake-ups';

/** The log in memory: for tests, and as the plainest statement of what every adapter does. */
export class InMemoryEventStore implements EventStore {
  private readonly streams = new Map<string, StoredEvent[]>();
  private readonly wakeUps = new WakeUps();

  append(ledger: string, expectedRevision: number, events: readonly SealedEvent[]): Promise<AppendResult> {
    const fault = batchFault(expectedRevision, events);
    if (fault) return Promise.reject(fault);
    const stream = this.streams.get(ledger) ?? [];
    if (stream.length - 1 !== expectedRevision) return Promise.resolve({ kind: 'conflict' });
    for (const event of events) stream.push({ ...event, bytes: Buffer.from(event.bytes) });
    this.streams.set(ledger, stream);
    return Promise.resolve({ kind: 'appended' });
  }

  read(ledger: string, options: ReadOptions = {}): Promise<StoredEvent[]> {
    const stream = this.streams.get(ledger) ?? [];
    const limit = options.limit ?? 1_000;
    if (options.direction === 'backwards') {
      // Never below 0: a negative end would count from the newest event.
      const end = Math.max(0, Math.min((options.from ?? Infinity) + 1, stream.length));
      return Promise.resolve(stream.slice(Math.max(0, end - limit), end).reverse());
    }
    const from = Math.max(0, options.from ?? 0);
    return Promise.resolve(stream.slice(from, from + limit));
  }

  head(ledger: string): Promise<StreamHead | undefined> {
    const last = this.streams.get(ledger)?.at(-1);
    return Promise.resolve(last && { revision: last.revision, at: last.at });
  }

  revisionAt(ledger: string, atMs: number): Promise<number> {
    const stream = this.streams.get(ledger) ?? [];
    const found = stream.findIndex((event) => event.at >= atMs);
    return Promise.resolve(found < 0 ? stream.length : found);
  }

  subscribe(ledger: string, options: SubscribeOptions): AsyncIterable<StoredEvent[]> {
    return followStream({
      options,
      read: (from, limit) => this.read(ledger, { from, limit }),
      wakeUps: this.wakeUps.of(ledger),
    });
  }

  wake(ledger: string): void {
    this.wakeUps.wake(ledger);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
