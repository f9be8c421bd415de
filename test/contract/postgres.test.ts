import pg from 'pg';
import { EMPTY, UnknownOutcomeError } from '../../src/event-store/event-store';
import type { StoredEvent } from '../../src/event-store/event-store';
import { appendError } from '../../src/event-store/postgres/append-errors';
import { PostgresEventStore } from '../../src/event-store/postgres/postgres-event-store';
import type { PostgresEventStoreParts } from '../../src/event-store/postgres/postgres-event-store';
import { openDatabase } from '../../src/postgres/pool';
import type { Database } from '../../src/postgres/pool';
import { createTestDatabase } from '../support/database';
import type { TestDatabase } from '../support/database';
import { until } from '../support/until';
import { batch, endingWithTheTest, eventStoreContract, take } from './event-store.contract';

const quiet = { info: () => undefined, warn: () => undefined };

describe('the log in PostgreSQL', () => {
  const ending = endingWithTheTest();
  let creating: Promise<TestDatabase> | undefined;
  let database: TestDatabase | undefined;
  const opened: { store: PostgresEventStore; database: Database }[] = [];

  const open = async (parts: Partial<PostgresEventStoreParts> = {}): Promise<PostgresEventStore> => {
    creating ??= createTestDatabase();
    database = await creating;
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
      ...parts,
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
    const abort = ending();
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

  const backends = async (client: pg.Client, which: string): Promise<number[]> => {
    const { rows } = await client.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND ${which}`,
    );
    return rows.map(({ pid }) => pid);
  };
  const waiting = "wait_event_type = 'Lock' AND query LIKE '%INSERT INTO events%'";

  /** Holds the key of revision 0 in an open transaction, so that an append of it must wait. */
  const holdFirst = async (client: pg.Client, ledger: string): Promise<void> => {
    await client.query('BEGIN');
    await client.query(
      "INSERT INTO events (ledger, revision, at, id, type, body) VALUES ($1, 0, now(), gen_random_uuid(), 'X', '')",
      [ledger],
    );
  };
  const storedIds = async (store: PostgresEventStore, ledger: string): Promise<string[]> =>
    (await store.read(ledger)).map(({ id }) => id);

  it('an append nobody answered in time is unknown; it is stored later, and the same bytes again show that', async () => {
    const store = await open({ appendTimeoutMs: 300 });
    const events = batch(0, 2);
    const own = events.map(({ id }) => id);
    await asAdmin(async (client) => {
      await holdFirst(client, 'unknown-stored');
      await expect(store.append('unknown-stored', EMPTY, events)).rejects.toThrow(UnknownOutcomeError);
      expect(await storedIds(store, 'unknown-stored')).toEqual([]);
      await client.query('ROLLBACK');
    });
    await until(async () => (await store.head('unknown-stored')) !== undefined, 'the late commit');
    expect(await store.append('unknown-stored', EMPTY, events)).toEqual({ kind: 'conflict' });
    expect(await storedIds(store, 'unknown-stored')).toEqual(own);
  });

  it('an append nobody answered in time is unknown; again, it turns out lost to another', async () => {
    const store = await open({ appendTimeoutMs: 300 });
    const events = batch(0, 2);
    await asAdmin(async (client) => {
      await holdFirst(client, 'unknown-lost');
      await expect(store.append('unknown-lost', EMPTY, events)).rejects.toThrow(UnknownOutcomeError);
      await client.query('COMMIT');
    });
    expect(await store.append('unknown-lost', EMPTY, events)).toEqual({ kind: 'conflict' });
    const stored = await storedIds(store, 'unknown-lost');
    expect(stored).toHaveLength(1);
    expect(stored).not.toContain(events[0]?.id);
  });

  it('an append whose connection dies is unknown; nothing was stored, and the same bytes again are', async () => {
    const store = await open();
    const events = batch(0, 2);
    await asAdmin(async (client) => {
      await holdFirst(client, 'unknown-none');
      const lost = expect(store.append('unknown-none', EMPTY, events)).rejects.toThrow(UnknownOutcomeError);
      // On a connection of its own: within a transaction pg_stat_activity does not change.
      await asAdmin(async (killer) => {
        let pids: number[] = [];
        await until(
          async () => (pids = await backends(killer, waiting)).length === 1,
          'the append that waits',
        );
        await killer.query('SELECT pg_terminate_backend($1)', [pids[0]]);
      });
      await lost;
      await client.query('ROLLBACK');
    });
    expect(await storedIds(store, 'unknown-none')).toEqual([]);
    expect((await store.append('unknown-none', EMPTY, events)).kind).toBe('appended');
    expect(await storedIds(store, 'unknown-none')).toEqual(events.map(({ id }) => id));
  });

  it('a connection given up frees its place: the next append gets a new one, and none is left over', async () => {
    let asked = 0;
    let places = 0;
    const own = openDatabase({
      url: database?.url ?? '',
      schema: database?.schema ?? '',
      poolSize: 6,
      applicationName: 'places',
      log: quiet,
    });
    const connect = async (): Promise<pg.Client> => {
      asked += 1;
      const client = await own.connect();
      places += 1;
      client.once('end', () => (places -= 1));
      return client;
    };
    // The third dedicated connection of the process: the projection's.
    await own.connect();
    const store = new PostgresEventStore({
      pool: own.pool,
      connect,
      schema: own.schema,
      appendTimeoutMs: 200,
    });
    opened.push({ store, database: own });
    for (const round of [0, 1, 2]) {
      await asAdmin(async (client) => {
        await holdFirst(client, `stuck-${round}`);
        const stuck = expect(store.append(`stuck-${round}`, EMPTY, batch(0, 1))).rejects.toThrow(
          UnknownOutcomeError,
        );
        const next = store.append(`free-${round}`, EMPTY, batch(0, 1));
        await stuck;
        expect((await next).kind).toBe('appended');
        await client.query('ROLLBACK');
      });
      expect((await store.append(`free-${round}`, 0, batch(1, 1))).kind).toBe('appended');
    }
    expect([asked, places]).toEqual([5, 2]);
  });

  it('where no connection can be made nothing was stored (casebook 42)', async () => {
    const store = await open({ connect: () => Promise.reject(new Error('no way there')) });
    await expect(store.append('nowhere', EMPTY, batch(0, 1))).rejects.toMatchObject({
      name: 'StoreUnavailableError',
      message: 'no way there',
    });
  });

  it('a read-only server took nothing; the next append goes over another connection', async () => {
    let readOnly = true;
    const own = opened[0]?.database;
    if (!own) throw new Error('no database');
    const url = database?.url ?? '';
    const clients: pg.Client[] = [];
    const store = await open({
      connect: async () => {
        const settings = `-c search_path=${own.schema} -c default_transaction_read_only=${readOnly ? 'on' : 'off'}`;
        const client = new pg.Client({ connectionString: url, options: settings });
        client.on('error', () => undefined);
        await client.connect();
        clients.push(client);
        return client;
      },
    });
    await expect(store.append('standby', EMPTY, batch(0, 1))).rejects.toMatchObject({
      name: 'StoreUnavailableError',
    });
    readOnly = false;
    expect((await store.append('standby', EMPTY, batch(0, 1))).kind).toBe('appended');
    await store.close();
    expect(clients).toHaveLength(3);
  });

  it('every error of the server has its meaning; what is not certain is unknown (casebook 39)', () => {
    const meaning = (code?: string): string => appendError(Object.assign(new Error('x'), { code })).name;
    expect(['22021', '22P02', '23514', '54000'].map(meaning)).toEqual(Array(4).fill('AppendRefusedError'));
    expect(['53100', '53300', '57P03', '25006'].map(meaning)).toEqual(Array(4).fill('StoreUnavailableError'));
    expect(['57P01', '57014', '08006', '40P01', 'XX000', 'ECONNRESET', undefined].map(meaning)).toEqual(
      Array(7).fill('UnknownOutcomeError'),
    );
  });

  /** Reads a subscription in the background. */
  const follow = (store: PostgresEventStore, ledger: string) => {
    const abort = ending();
    const seen: number[] = [];
    const states: string[] = [];
    const onState = (state: string): void => void states.push(state);
    const reading = (async () => {
      for await (const events of store.subscribe(ledger, { from: 0, signal: abort.signal, onState }))
        seen.push(...events.map(({ revision }) => revision));
    })();
    return { seen, states, reading, abort };
  };

  it('a NOTIFY of another instance wakes a subscription that does not look by itself', async () => {
    const reader = await open({ pollMs: 3_600_000 });
    const writer = await open();
    const { seen, states, reading, abort } = follow(reader, 'told');
    await until(() => states.includes('live'), 'the subscription to be live');
    // The first may be what it looks up when it begins to listen; the others it can only have been told of.
    for (const revision of [0, 1, 2]) {
      await writer.append('told', revision - 1, batch(revision, 1));
      writer.wake('told');
      await until(() => seen.length === revision + 1, `revision ${revision}`);
    }
    abort.abort();
    await reading;
  });

  it('listens again when its connection for news was cut (casebook 38)', async () => {
    // Ended first: it must not be one of the other instances that is found to listen.
    for (const { store } of opened) await store.close();
    const reader = await open({ pollMs: 3_600_000 });
    const { seen, states, reading, abort } = follow(reader, 'listens-again');
    await until(() => states.includes('live'), 'the subscription to be live');
    await asAdmin(async (client) => {
      let [cut]: number[] = [];
      const listener = async () => ([cut] = await backends(client, "query LIKE 'LISTEN%'")).length === 1;
      await until(listener, 'the connection that listens');
      const before = cut;
      await client.query('SELECT pg_terminate_backend($1)', [before]);
      await until(async () => (await listener()) && cut !== before, 'a new one');
    });
    const writer = await open();
    for (const revision of [0, 1, 2]) {
      await writer.append('listens-again', revision - 1, batch(revision, 1));
      writer.wake('listens-again');
      await until(() => seen.length === revision + 1, `revision ${revision}`);
    }
    abort.abort();
    await reading;
  });

  it('what nobody told of is found by looking (casebook 37)', async () => {
    const reader = await open({ pollMs: 20 });
    const writer = await open();
    const { seen, reading, abort } = follow(reader, 'untold');
    await writer.append('untold', EMPTY, batch(0, 2));
    await until(() => seen.length === 2, 'both events');
    abort.abort();
    await reading;
  });

  it('one NOTIFY tells of many ledgers, and not more than 20 a second go out', async () => {
    const own = opened[0]?.database;
    if (!own) throw new Error('no database');
    const sent: { at: number; ledgers: string[] }[] = [];
    const query = (question: { text: string; values: [string, string[]] }): Promise<unknown> => {
      sent.push({ at: performance.now(), ledgers: question.values[1] });
      return own.pool.query(question);
    };
    const store = await open({ pool: { query } as unknown as pg.Pool });
    // News all the time: as soon as one was let out too early, two would be close together.
    for (let n = 0; sent.length < 5; n += 1) {
      store.wake(`many-${n % 10}`);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const gaps = sent.slice(1).map(({ at }, i) => at - (sent[i]?.at ?? at));
    // A timer may be a millisecond early.
    expect(gaps.filter((gap) => gap < 48)).toEqual([]);
    expect(new Set(sent.flatMap(({ ledgers }) => ledgers)).size).toBe(10);
    expect(sent.every(({ ledgers }) => new Set(ledgers).size === ledgers.length)).toBe(true);
  });

  it('casebook 36: a hole in the log is an error for whoever reads it, not a standstill', async () => {
    const store = await open();
    await store.append('hole', EMPTY, batch(0, 4));
    await asAdmin((client) => client.query("DELETE FROM events WHERE ledger = 'hole' AND revision = 2"));
    await expect(take(store.subscribe('hole', { from: 0, signal: ending().signal }), 9)).rejects.toThrow(
      'the log has a hole: revision 2 is missing, 3 follows',
    );
  });

  it('a batch that cannot be stored is refused, and the connection goes on', async () => {
    const store = await open();
    const [bad] = batch(0, 1);
    if (!bad) throw new Error('no event');
    await expect(store.append('poison', EMPTY, [{ ...bad, id: 'no uuid' }])).rejects.toMatchObject({
      name: 'AppendRefusedError',
    });
    expect((await store.append('poison', EMPTY, batch(0, 1))).kind).toBe('appended');
    expect(await take(store.subscribe('poison', { from: 0, signal: ending().signal }), 1)).toHaveLength(1);
  });
});
