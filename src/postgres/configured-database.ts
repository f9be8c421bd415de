import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { startEmbeddedPostgres, type EmbeddedPostgres } from './embedded/embedded-postgres';
import { SHELTER } from './embedded/place';
import type { Log } from './log';
import { migrate } from './migrations';
import { MIN_POOL_SIZE, openDatabase, type Database } from './pool';

/** The database that the configuration asks for, migrated and ready. */
export interface ConfiguredDatabase {
  readonly database: Database;
  /** With its password: for connections, never for logs. */
  readonly url: string;
  /** Undefined with DATABASE_URL. */
  readonly embedded: EmbeddedPostgres | undefined;
  /** Closes the connections, then stops an embedded server that nobody else uses. */
  stop(): Promise<void>;
}

/** The part of `Config` that says which database. */
export interface DatabaseConfig {
  readonly databaseUrl: string | undefined;
  readonly databaseSchema: string;
  readonly databasePool: number;
  readonly dataDir: string;
}

/** The oldest PostgreSQL that tests run on. */
const MIN_VERSION = 140_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** A database started together with the service may need a moment. */
const PATIENCE_MS = 10_000;
const RETRY_MS = 500;

/**
 * Throws an Error that says what is wrong with the database, for people who start a service. `shelters`: see
 * EmbeddedRequest.
 */
export async function openConfiguredDatabase(
  config: DatabaseConfig,
  log: Log,
  shelters: readonly string[] = [SHELTER],
): Promise<ConfiguredDatabase> {
  const { databaseUrl, databaseSchema: schema, databasePool, dataDir } = config;
  const embedded =
    databaseUrl === undefined ? await startEmbeddedPostgres({ dataDir, log, shelters }) : undefined;
  const url = embedded?.url ?? databaseUrl ?? '';
  try {
    await checkServer(url, log);
    await migrate({ url, schema, log });
  } catch (error) {
    await embedded?.stop();
    throw error;
  }
  // The session that keeps the embedded server ours is a connection too.
  const poolSize = embedded === undefined ? databasePool : Math.max(MIN_POOL_SIZE, databasePool - 1);
  const database = openDatabase({ url, schema, poolSize, applicationName: 'spend-ledger', log });
  return {
    database,
    url,
    embedded,
    stop: async () => {
      await database.close();
      await embedded?.stop();
    },
  };
}

async function checkServer(url: string, log: Log): Promise<void> {
  const client = await firstConnection(url, log);
  try {
    const { rows } = await client.query<{
      version: number;
      name: string;
      encoding: string;
      standby: boolean;
    }>(
      `SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS name,
              current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS standby`,
    );
    const [server] = rows;
    if (server === undefined) throw new Error('PostgreSQL told no version');
    if (server.version < MIN_VERSION)
      throw new Error(`PostgreSQL 14 or newer is needed; this is ${server.name}`);
    if (server.encoding !== 'UTF8')
      throw new Error(`the database must be encoded in UTF8, not ${server.encoding}`);
    if (server.standby)
      throw new Error('this PostgreSQL is a read-only standby: name the primary in DATABASE_URL');
  } finally {
    await client.end();
  }
}

async function firstConnection(url: string, log: Log): Promise<pg.Client> {
  const deadline = performance.now() + PATIENCE_MS;
  for (let attempt = 1; ; attempt += 1) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
    client.on('error', () => undefined); // a lost connection also rejects the query it interrupts
    try {
      await client.connect();
      return client;
    } catch (error) {
      void client.end().catch(() => undefined);
      const reason = describe(error);
      if (!mayPass(error) || performance.now() > deadline) {
        throw new Error(`cannot connect to ${withoutSecrets(url)}: ${reason}`, { cause: error });
      }
      if (attempt === 1) log.warn(`waiting for PostgreSQL at ${withoutSecrets(url)}`, { error: reason });
      await delay(RETRY_MS);
    }
  }
}

/** Nobody listens yet, or the server is starting up. */
function mayPass(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === 'ECONNREFUSED' || code === '57P03';
}

/** A refusal on every address of a name is an AggregateError without words. */
function describe(error: unknown): string {
  const { message, code } = error as { message?: string; code?: string };
  return message === undefined || message === '' ? (code ?? String(error)) : message;
}

/** Host, port and database: a URL's user part and parameters may hold a password. */
export function withoutSecrets(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
