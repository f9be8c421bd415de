import type { Client, Pool } from 'pg';
import type {
  AppendResult,
  EventStore,
  ReadOptions,
  SealedEvent,
  StoredEvent,
  StreamHead,
  SubscribeOptions,
} from '../event-store';
import { batchFault } from '../batch-fault';
import { followStream } from '../follow-stream';
import { WakeUps } from '../wake-ups';
import { AppendConnection } from './append-connection';
import { News } from './news';

export interface PostgresEventStoreParts {
  /** For reads; `search_path` is set on its connections. */
  readonly pool: Pool;
  /** A connection of the caller's own; two are taken: for appends and for news. */
  readonly connect: () => Promise<Client>;
  readonly schema: string;
  /** How long an append may go unanswered before its outcome counts as unknown; default 5,000. */
  readonly appendTimeoutMs?: number;
  /** How often a subscription looks although nobody woke it; default 1,000. */
  readonly pollMs?: number;
}

interface EventRow {
  readonly revision: string;
  readonly at: number;
  readonly id: string;
  readonly type: string;
  readonly body: Buffer;
}

const COLUMNS = `revision, round(extract(epoch FROM at) * 1000)::float8 AS at, id, type, body`;
const FORWARDS = `SELECT ${COLUMNS} FROM events WHERE ledger = $1 AND revision >= $2 ORDER BY revision LIMIT $3`;
const BACKWARDS = `SELECT ${COLUMNS} FROM events WHERE ledger = $1 AND revision <= $2 ORDER BY revision DESC LIMIT $3`;
const HEAD = `SELECT revision, round(extract(epoch FROM at) * 1000)::float8 AS at FROM events WHERE ledger = $1 ORDER BY revision DESC LIMIT 1`;
const AT = `SELECT round(extract(epoch FROM at) * 1000)::float8 AS at FROM events WHERE ledger = $1 AND revision = $2`;
const NOTIFY = `SELECT pg_notify($1, ledger) FROM unnest($2::text[]) AS grown(ledger)`;
const NEWEST = '9223372036854775807';

/** The log in one PostgreSQL table. */
export class PostgresEventStore implements EventStore {
  private readonly wakeUps = new WakeUps();
  private readonly appends: AppendConnection;
  private readonly news: News;

  constructor(private readonly parts: PostgresEventStoreParts) {
    this.appends = new AppendConnection(parts.connect, parts.appendTimeoutMs ?? 5_000);
    // The schema's name is the channel: with anything added to it, a long one would be cut and heard by nobody.
    this.news = new News(parts.connect, parts.schema, this.wakeUps, (channel, ledgers) =>
      parts.pool.query({ name: 'events-notify', text: NOTIFY, values: [channel, ledgers] }),
    );
    this.news.start();
  }

  append(ledger: string, expectedRevision: number, events: readonly SealedEvent[]): Promise<AppendResult> {
    const fault = batchFault(expectedRevision, events);
    return fault ? Promise.reject(fault) : this.appends.append(ledger, expectedRevision, events);
  }

  async read(ledger: string, options: ReadOptions = {}): Promise<StoredEvent[]> {
    const limit = options.limit ?? 1_000;
    const backwards = options.direction === 'backwards';
    const { rows } = await this.parts.pool.query<EventRow>({
      name: backwards ? 'events-backwards' : 'events-forwards',
      text: backwards ? BACKWARDS : FORWARDS,
      values: [ledger, options.from ?? (backwards ? NEWEST : 0), limit],
    });
    return rows.map(({ revision, at, id, type, body }) => ({
      revision: Number(revision),
      at,
      id,
      type,
      bytes: body,
    }));
  }

  async head(ledger: string): Promise<StreamHead | undefined> {
    const { rows } = await this.parts.pool.query<{ revision: string; at: number }>({
      name: 'events-head',
      text: HEAD,
      values: [ledger],
    });
    const row = rows[0];
    return row && { revision: Number(row.revision), at: row.at };
  }

  /** Times never go back, so bisecting by revision needs no index over them. */
  async revisionAt(ledger: string, atMs: number): Promise<number> {
    let low = 0;
    let high = ((await this.head(ledger))?.revision ?? -1) + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const { rows } = await this.parts.pool.query<{ at: number }>({
        name: 'events-at',
        text: AT,
        values: [ledger, middle],
      });
      if ((rows[0]?.at ?? Infinity) >= atMs) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  subscribe(ledger: string, options: SubscribeOptions): AsyncIterable<StoredEvent[]> {
    return followStream({
      options,
      read: (from, limit) => this.read(ledger, { from, limit }),
      wakeUps: this.wakeUps.of(ledger),
      pollMs: this.parts.pollMs,
    });
  }

  wake(ledger: string): void {
    this.wakeUps.wake(ledger);
    this.news.tell(ledger);
  }

  async close(): Promise<void> {
    await Promise.all([this.appends.close(), this.news.close()]);
  }
}
