import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { migrate } from '../../src/postgres/migrations';
import { createEmptyDatabase, type TestDatabase } from '../support/database';
import { RecordedLog } from '../support/recorded-log';

let database: TestDatabase;
let folder: string;
let client: pg.Client;
let log: RecordedLog;

beforeEach(async () => {
  database = await createEmptyDatabase();
  folder = await mkdtemp(path.join(tmpdir(), 'spend-ledger-migrations-'));
  await write('0001_things.sql', 'CREATE TABLE things (id int); INSERT INTO things VALUES (1);');
  await write('0002_more.sql', 'SELECT pg_sleep(0.1); INSERT INTO things VALUES (2);');
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  log = new RecordedLog();
});

afterEach(async () => {
  await client.end();
  await database.drop();
  await rm(folder, { recursive: true });
});

async function write(name: string, sql: string): Promise<void> {
  await writeFile(path.join(folder, name), sql);
}

async function run(): Promise<void> {
  await migrate({ url: database.url, schema: 'money', log, folder });
}

async function things(): Promise<number[]> {
  const { rows } = await client.query<{ id: number }>('SELECT id FROM money.things ORDER BY id');
  return rows.map(({ id }) => id);
}

describe('migrations', () => {
  it('run once each, in order, into a schema of their own', async () => {
    await run();
    await run();
    expect(await things()).toEqual([1, 2]);
    const { rows } = await client.query(
      "SELECT table_schema AS schema, table_name AS name FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 2",
    );
    expect(rows).toEqual([
      { schema: 'money', name: 'migrations' },
      { schema: 'money', name: 'things' },
    ]);
    expect(log.entries.filter(({ level }) => level === 'info')).toEqual([
      {
        level: 'info',
        message: 'migrated the database',
        fields: { schema: 'money', migrations: ['0001_things', '0002_more'] },
      },
    ]);
  });

  it('of two starters on an empty database: one migrates, the other waits', async () => {
    await Promise.all([run(), run(), run()]);
    expect(await things()).toEqual([1, 2]);
    expect(log.messages()).toEqual(['migrated the database']);
  });

  it('leave nothing of a run in which one of them fails', async () => {
    await write('0003_wrong.sql', 'CREATE TABLE later (id int); SELECT 1/0;');
    await expect(run()).rejects.toThrow('division by zero');
    expect((await client.query("SELECT to_regclass('money.things') AS things")).rows).toEqual([
      { things: null },
    ]);
    await write('0003_wrong.sql', 'CREATE TABLE later (id int);');
    await run();
    expect(await things()).toEqual([1, 2]);
  });

  it('apply what a newer version adds, and refuse a database that a newer version migrated', async () => {
    await run();
    await write('0003_third.sql', 'INSERT INTO things VALUES (3);');
    await run();
    expect(await things()).toEqual([1, 2, 3]);
    await rm(path.join(folder, '0003_third.sql'));
    await expect(run()).rejects.toThrow('was migrated by a newer version (0003_third)');
  });

  it('notice an applied file that was edited, but not other line endings', async () => {
    await write('0001_things.sql', 'CREATE TABLE things (id int);\nINSERT INTO things VALUES (1);');
    await run();
    await write('0001_things.sql', 'CREATE TABLE things (id int);\r\nINSERT INTO things VALUES (1);');
    await run();
    await write('0001_things.sql', 'CREATE TABLE things (id bigint);');
    await write('0003_third.sql', 'INSERT INTO things VALUES (3);');
    await expect(run()).rejects.toThrow('migration 0001_things was changed after it had been applied');
    expect(await things()).toEqual([1, 2]);
  });

  it('live beside the tables of others, and go with DROP SCHEMA', async () => {
    await client.query('CREATE TABLE public.things (id text); CREATE TABLE public.migrations (id text)');
    await run();
    expect(await things()).toEqual([1, 2]);
    await client.query('DROP SCHEMA money CASCADE');
    expect((await client.query('SELECT count(*)::int AS count FROM public.things')).rows).toEqual([
      { count: 0 },
    ]);
    await run();
    expect(await things()).toEqual([1, 2]);
  });

  it('need no right to create schemas where the schema is there already', async () => {
    const role = `owner_${path.basename(folder).slice(-6).toLowerCase()}`;
    await client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
    await client.query(`CREATE SCHEMA money AUTHORIZATION ${role}`);
    const url = new URL(database.url);
    [url.username, url.password] = [role, 'secret'];
    await migrate({ url: url.href, schema: 'money', log, folder });
    expect(await things()).toEqual([1, 2]);
    await client.query('DROP SCHEMA money CASCADE');
    await client.query(`DROP ROLE ${role}`);
  });

  it('of this version apply to an empty database and need no extension', async () => {
    await migrate({ url: database.url, schema: 'spend_ledger', log });
    const { rows } = await client.query("SELECT extname FROM pg_extension WHERE extname <> 'plpgsql'");
    expect(rows).toEqual([]);
  });
});
