import pg from 'pg';
import { EMPTY, UnknownOutcomeError } from '../../src/event-store/event-store';
import type { StoredEvent } from '../../src/event-store/event-store';
import { PostgresEventStore } from '../../src/event-store/postgres/postgres-event-store';
import { openDatabase } from '../../src/postgres/pool';
import type { Database } from '../../src/postgres/pool';
import { createTestDatabase } from '../support/database';
import type { TestDatabase } from '../support/database';
import { until } from '../support/until';
import { batch, eventStoreContract, take } from './event-store.contract';

const quiet = { info: () => undefined, warn: () => undefined };

describe('the log in PostgreSQL', () => {
  let database: TestDatabase | undefined;
  const opened: { store: PostgresEventStore; database: Database }[] = [];

  const open = async (appendTimeoutMs = 5_000): Promise<PostgresEventStore> => {
    database ??= await createTestDatabase();
    const own = openDatabase({
      url: database.url,
      schema: database.schema,
      poolSize: 6,
      applicationName: 'contract',
      log: quiet,
    });
    const store = new PostgresEventStore({
      pool: own.pool,
      connect: () => own.connect(),
      schema: own.schema,
      appendTimeoutMs,
    });
    opened.push({ store, database: own });
    return store;
  };

  afterAll(async () => {
    for (const { store, database: own } of opened) {
      await store.close();
      await own.close();
    }
    await database?.drop();
  });

  eventStoreContract(open);

  const asAdmin = async <T>(work: (client: pg.Client) => Promise<T>): Promise<T> => {
    const client = new pg.Client({
      connectionString: database?.url,
      options: `-c search_path=${database?.schema ?? ''}`,
    });
    await client.connect();
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  };

  it('answers an append with the store’s clock', async () => {
    const store = await open();
    const result = await store.append('clock', EMPTY, batch(0, 1));
    const now = await asAdmin(async (client) => {
      const { rows } = await client.query<{ now: number }>(
        'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
      );
      return rows[0]?.now ?? 0;
    });
    expect(result.kind === 'appended' && Math.abs((result.storeTime ?? 0) - now) < 5_000).toBe(true);
  });

  it('a subscription outlives its connections (casebook 38)', async () => {
    const store = await open();
    const abort = new AbortController();
    const seen: StoredEvent[] = [];
    const reading = (async () => {
      for await (const events of store.subscribe('cut', { from: 0, signal: abort.signal })) {
        seen.push(...events);
        if (seen.length >= 4) break;
      }
    })();
    await store.append('cut', EMPTY, batch(0, 2));
    store.wake('cut');
    await until(() => seen.length === 2, 'the first two events');
    await asAdmin((client) =>
      client.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
      ),
    );
    const more = batch(2, 2);
    const writer = await open();
    await writer.append('cut', 1, more);
    writer.wake('cut');
    await reading;
    expect(seen.map(({ revision }) => revision)).toEqual([0, 1, 2, 3]);
  });

  /** Holds the key of revision 0 in an open transaction, so that an append of it must wait. */
  async function blocked(ledger: string, end: 'COMMIT' | 'ROLLBACK'): Promise<void> {
    const store = await open(300);
    const events = batch(0, 2);
    await asAdmin(async (client) => {
      await client.query('BEGIN');
      await client.query(
        "INSERT INTO events (ledger, revision, at, id, type, body) VALUES ($1, 0, now(), gen_random_uuid(), 'X', '')",
        [ledger],
      );
      await expect(store.append(ledger, EMPTY, events)).rejects.toThrow(UnknownOutcomeError);
      await client.query(end);
    });
    const again = await store.append(ledger, EMPTY, events);
    const stored = (await store.read(ledger)).map(({ id }) => id);
    if (end === 'ROLLBACK') {
      // Whoever of the two came first, the events are there, once.
      expect(stored).toEqual(events.map(({ id }) => id));
    } else {
      expect([again.kind, stored.length]).toEqual(['conflict', 1]);
      expect(stored).not.toContain(events[0]?.id);
    }
  }

  it('an append nobody answered in time is unknown; again, the same bytes turn out stored', () =>
    blocked('unknown-a', 'ROLLBACK'));
  it('an append nobody answered in time is unknown; again, it turns out lost to another', () =>
    blocked('unknown-b', 'COMMIT'));

  it('a batch that cannot be stored is refused, and the connection goes on', async () => {
    const store = await open();
    const [bad] = batch(0, 1);
    if (!bad) throw new Error('no event');
    await expect(store.append('poison', EMPTY, [{ ...bad, id: 'no uuid' }])).rejects.toMatchObject({
      name: 'AppendRefusedError',
    });
    expect((await store.append('poison', EMPTY, batch(0, 1))).kind).toBe('appended');
    expect(
      await take(store.subscribe('poison', { from: 0, signal: new AbortController().signal }), 1),
    ).toHaveLength(1);
  });
});
