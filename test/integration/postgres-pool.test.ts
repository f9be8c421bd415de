import { createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { DatabaseClock } from '../../src/postgres/clock';
import {
  DEDICATED_CONNECTIONS,
  openDatabase,
  pooledConnections,
  type Database,
} from '../../src/postgres/pool';
import { readStoreTime } from '../../src/postgres/store-time';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { RecordedLog } from '../support/recorded-log';
import { until } from '../support/until';

let database: TestDatabase;
let opened: Database[];
let log: RecordedLog;

beforeEach(async () => {
  database = await createTestDatabase();
  opened = [];
  log = new RecordedLog();
});

afterEach(async () => {
  await Promise.all(opened.map((each) => each.close()));
  await database.drop();
});

function open(url = database.url, poolSize = 8): Database {
  const made = openDatabase({ url, schema: database.schema, poolSize, applicationName: 'pool test', log });
  opened.push(made);
  return made;
}

async function once(emitter: pg.Client | pg.Pool, event: string): Promise<unknown> {
  return new Promise((resolve) => (emitter as NodeJS.EventEmitter).once(event, resolve));
}

describe('the database of a process', () => {
  it('finds its tables without a schema name on every connection, pooled or not', async () => {
    const db = open();
    const client = await db.connect();
    for (const each of [db.pool, client]) {
      const { rows } = await each.query(
        "SELECT current_schema AS schema, current_setting('timezone') AS timezone",
      );
      expect(rows).toEqual([{ schema: 'spend_ledger', timezone: 'UTC' }]);
    }
  });

  it('keeps the options that the URL sets, and its own beside them', async () => {
    const url = new URL(database.url);
    url.searchParams.set('options', '-c work_mem=5MB -c search_path=public');
    const { rows } = await open(url.href).pool.query(
      "SELECT current_setting('work_mem') AS work_mem, current_setting('search_path') AS search_path",
    );
    expect(rows).toEqual([{ work_mem: '5MB', search_path: 'spend_ledger' }]);
  });

  it('never has more connections than it may', async () => {
    const db = open(database.url, 5);
    const dedicated = await Promise.all([db.connect(), db.connect(), db.connect()]);
    const queries = Array.from({ length: 20 }, () => db.pool.query('SELECT 1'));
    await Promise.all(queries);
    const { rows } = await db.pool.query(
      "SELECT count(*)::int AS connections FROM pg_stat_activity WHERE application_name = 'pool test' AND datname = current_database()",
    );
    expect(rows).toEqual([{ connections: 5 }]);
    expect(pooledConnections(5)).toBe(5 - DEDICATED_CONNECTIONS);
    await expect(db.connect()).rejects.toThrow('all 3 dedicated database connections are taken');
    await dedicated[0].end();
    expect((await (await db.connect()).query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  });

  it('refuses a size that leaves the pool nothing', () => {
    expect(() => open(database.url, 3)).toThrow(RangeError);
  });

  it('goes on when the server ends its connections', async () => {
    const db = open();
    const client = await db.connect();
    await db.pool.query('SELECT 1');
    const lost = Promise.all([once(db.pool, 'error'), once(client, 'end')]);
    const admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    await admin.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pool test' AND datname = current_database()",
    );
    await admin.end();
    await lost;
    expect((await db.pool.query('SELECT 2 AS two')).rows).toEqual([{ two: 2 }]);
    expect(log.messages()).toContain('an idle database connection was lost');
    expect((await (await db.connect()).query('SELECT 3 AS three')).rows).toEqual([{ three: 3 }]);
  });

  it('ends a read that takes too long, but not the statements of a dedicated connection', async () => {
    const db = open();
    const client = await db.connect();
    expect((await db.pool.query('SHOW statement_timeout')).rows).toEqual([{ statement_timeout: '30s' }]);
    expect((await client.query('SHOW statement_timeout')).rows).toEqual([{ statement_timeout: '0' }]);
  });

  it('casebook 42: a connect that times out leaks no place in the pool', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const url = new URL(database.url);
    url.port = String((silent.address() as AddressInfo).port);
    const db = open(url.href, 4);
    const attempts = await Promise.allSettled([
      db.pool.query('SELECT 1'),
      db.pool.query('SELECT 1'),
      db.connect(),
    ]);
    expect(attempts.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    await until(() => db.pool.totalCount === 0, 'no place is taken');
    expect(db.pool.waitingCount).toBe(0);
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => silent.close(resolve));
  });

  it('tells the time of the server', async () => {
    const db = open();
    const clock = new DatabaseClock({ readStoreTime: () => readStoreTime(db.pool) });
    await clock.refresh();
    const { rows } = await db.pool.query<{ now: Date }>('SELECT clock_timestamp() AS now');
    const difference = (rows[0]?.now.getTime() ?? 0) - clock.now();
    expect(Math.abs(difference)).toBeLessThan(1_000);
    expect(clock.isFresh()).toBe(true);
  });
});
