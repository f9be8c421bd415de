import { randomBytes } from 'node:crypto';
import pg from 'pg';

/** Where globalSetup leaves the server's address for the test processes. */
export const SERVER_VARIABLE = 'SPEND_LEDGER_TEST_SERVER';
export const TEMPLATE = 'spend_ledger_template';
export const TEST_SCHEMA = 'spend_ledger';

/** A migrated database of a test's own. */
export interface TestDatabase {
  readonly url: string;
  readonly schema: string;
  /** Ends whatever is still connected. */
  drop(): Promise<void>;
}

/** Copies the migrated template: some 30 ms. Call `drop` when the test ends. */
export async function createTestDatabase(): Promise<TestDatabase> {
  return createDatabase(`test_${randomBytes(8).toString('hex')}`, TEMPLATE);
}

/** A database with nothing in it, for tests of the migrations themselves; `options` as CREATE DATABASE has them. */
export async function createEmptyDatabase(options = ''): Promise<TestDatabase> {
  return createDatabase(`test_${randomBytes(8).toString('hex')}`, `template0 ${options}`);
}

async function createDatabase(name: string, template: string): Promise<TestDatabase> {
  await asAdmin((admin) => admin.query(`CREATE DATABASE ${name} TEMPLATE ${template}`));
  const url = new URL(serverUrl());
  url.pathname = `/${name}`;
  return {
    url: url.href,
    schema: TEST_SCHEMA,
    drop: async () => {
      await asAdmin((admin) => admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
    },
  };
}

async function asAdmin<T>(work: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = new pg.Client({ connectionString: serverUrl() });
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.end();
  }
}

function serverUrl(): string {
  const url = process.env[SERVER_VARIABLE];
  if (url === undefined) throw new Error('run tests through jest: its globalSetup starts PostgreSQL');
  return url;
}
