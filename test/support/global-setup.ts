import pg from 'pg';
import { migrate } from '../../src/postgres/migrations';
import { SERVER_VARIABLE, TEMPLATE, TEST_SCHEMA } from './database';
import { quiet, startTestServer, type TestServer } from './postgres-server';

declare global {
  /** `var` is how a global is declared: it hands the server from jest's globalSetup to its globalTeardown. */
  var testServer: TestServer | undefined;
}

/** One PostgreSQL for the whole run, with a migrated template that every test database is copied from. */
export default async function globalSetup(): Promise<void> {
  const server = await startTestServer();
  globalThis.testServer = server;
  try {
    await createTemplate(server.url);
  } catch (error) {
    await server.stop();
    throw error;
  }
  process.env[SERVER_VARIABLE] = server.url;
}

async function createTemplate(serverUrl: string): Promise<void> {
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  try {
    await admin.query(`CREATE DATABASE ${TEMPLATE}`);
    const url = new URL(serverUrl);
    url.pathname = `/${TEMPLATE}`;
    await migrate({ url: url.href, schema: TEST_SCHEMA, log: quiet });
    await admin.query(`ALTER DATABASE ${TEMPLATE} WITH ALLOW_CONNECTIONS false IS_TEMPLATE true`);
  } finally {
    await admin.end();
  }
}
