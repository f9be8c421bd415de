import pg from 'pg';
import type { Log } from './log';

/**
 * Connections of a process beside its pool: the writer's, the listener's (which holds locks too), the projection's.
 */
export const DEDICATED_CONNECTIONS = 3;
/** Dedicated ones and a pool of one. */
export const MIN_POOL_SIZE = DEDICATED_CONNECTIONS + 1;

const CONNECT_TIMEOUT_MS = 5_000;
const READ_TIMEOUT_MS = 30_000;
/** The server's time-out answers first; this one is for a server that is no longer there to answer. */
const SILENCE_TIMEOUT_MS = READ_TIMEOUT_MS + 5_000;
const IDLE_TRANSACTION_TIMEOUT_MS = 60_000;
const KEEP_ALIVE_AFTER_MS = 10_000;

export interface DatabaseRequest {
  /** `postgres://…` */
  readonly url: string;
  /** A validated identifier: it stands in `search_path` on every connection. */
  readonly schema: string;
  /** Most connections this process may have, at least MIN_POOL_SIZE. */
  readonly poolSize: number;
  readonly applicationName: string;
  readonly log: Log;
}

/** The way to PostgreSQL for one process, bounded in connections. */
export interface Database {
  /** For reads and short transactions: a statement ends after 30 s unless it sets another `statement_timeout`. */
  readonly pool: pg.Pool;
  readonly schema: string;
  /**
   * A connected client of the caller's own, without statement time-out; at most DEDICATED_CONNECTIONS at a time. A lost connection
   * rejects its query and emits 'end'; `end()` gives the place back.
   */
  connect(): Promise<pg.Client>;
  close(): Promise<void>;
}

/** How many connections the pool may have when the process may have `poolSize`. */
export function pooledConnections(poolSize: number): number {
  return poolSize - DEDICATED_CONNECTIONS;
}

/** Connects nothing yet. Throws RangeError for a pool size that leaves the pool without a connection. */
export function openDatabase(request: DatabaseRequest): Database {
  const { url, schema, poolSize, applicationName, log } = request;
  if (poolSize < MIN_POOL_SIZE) throw new RangeError(`poolSize must be at least ${String(MIN_POOL_SIZE)}`);
  const connection = {
    connectionString: withSessionSettings(url, schema),
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
  };
  const pool = new pg.Pool({
    ...connection,
    max: pooledConnections(poolSize),
    statement_timeout: READ_TIMEOUT_MS,
    query_timeout: SILENCE_TIMEOUT_MS,
  });
  // An idle connection that breaks is replaced at the next query; unheard, its error would end the process.
  pool.on('error', (error) => {
    log.warn('an idle database connection was lost', { error: error.message });
  });
  const dedicated = new DedicatedConnections(connection, log);
  return {
    pool,
    schema,
    connect: () => dedicated.open(),
    close: async () => {
      await Promise.all([pool.end(), dedicated.close()]);
    },
  };
}

class DedicatedConnections {
  readonly #open = new Set<pg.Client>();

  constructor(
    private readonly config: pg.ClientConfig,
    private readonly log: Log,
  ) {}

  async open(): Promise<pg.Client> {
    if (this.#open.size >= DEDICATED_CONNECTIONS) {
      throw new Error(`all ${String(DEDICATED_CONNECTIONS)} dedicated database connections are taken`);
    }
    const client = new pg.Client(this.config);
    this.#open.add(client);
    client.on('error', (error) => {
      this.log.warn('a dedicated database connection was lost', { error: error.message });
    });
    client.once('end', () => this.#open.delete(client));
    try {
      await client.connect();
      return client;
    } catch (error) {
      this.#open.delete(client);
      void client.end().catch(() => undefined); // a half-open socket must not outlive the attempt
      throw error;
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((client) => client.end().catch(() => undefined)));
  }
}

/**
 * Settings ride in the start packet, so that no query ever runs without them. Options that the operator put into
 * the URL stay; ours come last and win.
 */
function withSessionSettings(url: string, schema: string): string {
  const parsed = new URL(url);
  const own = `-c search_path=${schema} -c timezone=UTC`;
  const given = parsed.searchParams.get('options');
  parsed.searchParams.set('options', given === null ? own : `${given} ${own}`);
  return parsed.href;
}
