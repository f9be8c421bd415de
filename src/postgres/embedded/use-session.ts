import pg from 'pg';

/** 'spend' in ASCII and a version: services of one DATA_DIR agree on it. */
const USE_LOCK = 0x7370656e6401;
const CONNECT_TIMEOUT_MS = 5_000;
/** A service that stops the server holds the lock until the server is gone. */
const WAIT_MS = 60_000;

/**
 * One session for as long as a service uses the server, holding a shared lock: the database itself counts its
 * users, and a killed one is no longer counted. Who stops the server needs the lock alone, so that nobody adopts
 * a server that is being stopped.
 */
export class UseSession {
  #lost = false;

  private constructor(private readonly client: pg.Client) {}

  /** Undefined where the server does not take connections: starting, stopping, or gone. */
  static async open(url: string): Promise<UseSession | undefined> {
    const client = new pg.Client({
      connectionString: url,
      application_name: 'spend-ledger use',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      lock_timeout: WAIT_MS,
      keepAlive: true,
    });
    const session = new UseSession(client);
    client.on('error', () => (session.#lost = true));
    client.once('end', () => (session.#lost = true));
    try {
      await client.connect();
      await client.query('SELECT pg_advisory_lock_shared($1)', [USE_LOCK]);
      return session;
    } catch (error) {
      await client.end().catch(() => undefined);
      if (isPassing(error)) return undefined;
      throw error;
    }
  }

  get lost(): boolean {
    return this.#lost;
  }

  /** Calls back once when the server has gone away under the session. */
  onLost(listener: () => void): void {
    if (this.#lost) listener();
    else this.client.once('end', listener);
  }

  /** Gives up its own use, and tells whether nobody else is left. If so nobody can join until `end`. */
  async leave(): Promise<boolean> {
    await this.client.query('SELECT pg_advisory_unlock_shared($1)', [USE_LOCK]);
    const { rows } = await this.client.query<{ alone: boolean }>('SELECT pg_try_advisory_lock($1) AS alone', [
      USE_LOCK,
    ]);
    return rows[0]?.alone === true;
  }

  async end(): Promise<void> {
    await this.client.end().catch(() => undefined);
  }
}

/** A wrong password or a full server will not pass; everything about starting, stopping and sockets may. */
function isPassing(error: unknown): boolean {
  const { code } = error as { code?: string };
  const lasting = code !== undefined && /^(28|53|3D|42)/.test(code);
  return !lasting;
}
