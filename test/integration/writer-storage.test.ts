import pg from 'pg';
import { PostgresWriterStorage } from '../../src/writer/storage';
import type { Snapshot } from '../../src/writer/storage';
import { createTestDatabase } from '../support/database';
import type { TestDatabase } from '../support/database';

let database: TestDatabase;
let pool: pg.Pool;
let storage: PostgresWriterStorage;

beforeEach(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({
    connectionString: database.url,
    options: `-c search_path=${database.schema}`,
    max: 2,
  });
  storage = new PostgresWriterStorage(pool);
});
afterEach(async () => {
  await pool.end();
  await database.drop();
});

const NOON = Date.parse('2026-11-30T12:00:00Z');
const snapshot = (revision: number, more: Partial<Snapshot> = {}): Snapshot => ({
  ledger: 'main',
  revision,
  schemaVersion: 2,
  hash: revision.toString(16).padStart(64, '0'),
  atMs: NOON + revision,
  body: Buffer.from(`state at ${revision}`),
  ...more,
});
const kept = async () => {
  const { rows } = await pool.query<{ revision: string }>(
    `SELECT revision FROM snapshots WHERE ledger = 'main' ORDER BY revision`,
  );
  return rows.map(({ revision }) => Number(revision));
};

test('a ledger is registered once', async () => {
  await storage.registerLedger('team-b');
  await storage.registerLedger('main');
  await storage.registerLedger('team-b');
  expect(await storage.ledgers()).toEqual(['main', 'team-b']);
});

test('the newest snapshot comes back as it was saved', async () => {
  await storage.saveSnapshot(snapshot(10));
  await storage.saveSnapshot(snapshot(2_000_000_000_000));
  await storage.saveSnapshot(snapshot(7, { ledger: 'team-b' }));
  expect(await storage.newestSnapshot('main', 2)).toEqual(snapshot(2_000_000_000_000));
  expect(await storage.newestSnapshot('nobody', 2)).toBeUndefined();
});

test('a snapshot is found for a revision or a moment', async () => {
  for (const revision of [10, 300_000, 600_000]) await storage.saveSnapshot(snapshot(revision));
  expect((await storage.newestSnapshot('main', 2, { revision: 300_000 }))?.revision).toBe(300_000);
  expect((await storage.newestSnapshot('main', 2, { revision: 299_999 }))?.revision).toBe(10);
  expect((await storage.newestSnapshot('main', 2, { atMs: NOON + 300_000 }))?.revision).toBe(300_000);
  expect(await storage.newestSnapshot('main', 2, { atMs: NOON })).toBeUndefined();
});

test('casebook 40: another shape of the state is not read, an older one is let go', async () => {
  await storage.saveSnapshot(snapshot(10, { schemaVersion: 1 }));
  expect(await storage.newestSnapshot('main', 2)).toBeUndefined();
  await storage.saveSnapshot(snapshot(20));
  expect(await storage.newestSnapshot('main', 1)).toBeUndefined();
  // A process of the older version beside it does not take away what the newer one needs.
  await storage.saveSnapshot(snapshot(30, { schemaVersion: 1 }));
  expect((await storage.newestSnapshot('main', 2))?.revision).toBe(20);
});

test('the newest two stay, and one in 250,000 revisions of history', async () => {
  for (const revision of [100, 50_000, 200_000, 260_000, 300_000, 510_000, 520_000, 530_000]) {
    await storage.saveSnapshot(snapshot(revision));
  }
  expect(await kept()).toEqual([100, 260_000, 510_000, 520_000, 530_000]);
});

test('a dropped snapshot is gone', async () => {
  await storage.saveSnapshot(snapshot(10));
  await storage.dropSnapshot('main', 10);
  expect(await kept()).toEqual([]);
});
