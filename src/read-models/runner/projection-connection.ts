import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { Sql } from '../read-model';
import { ConnectionLostError } from './transaction';

const STATEMENT_TIMEOUT_MS = 60_000;
const LOCK_TIMEOUT_MS = 10_000;
/** Notifications a process sends at most: each takes a lock of the whole database while it commits. */
const NOTIFY_EVERY_MS = 50;

/** Locks and notifications are told apart by schema: several installations may share a database. */
export interface ConnectionRequest {
  readonly connect: () => Promise<pg.Client>;
  readonly schema: string;
  /** A ledger's checkpoints moved in another process. */
  readonly onMoved: (ledger: string) => void;
}

/**
 * The runner's own connection: its transactions one after another, its advisory locks (they go with it), and the
 * NOTIFY and LISTEN by which processes tell each other of moved checkpoints.
 */
export class ProjectionConnection {
  private client: pg.Client | undefined;
  private turn: Promise<unknown> = Promise.resolve();
  private readonly locks = new Set<string>();
  private readonly untold = new Set<string>();
  private notifying: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(private readonly request: ConnectionRequest) {}

  /** Runs `work` alone on the connection, made where there is none. Throws ConnectionLostError. */
  exclusive<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    const mine = this.turn.then(async () => {
      const client = await this.open();
      try {
        return await work(client);
      } catch (error) {
        if (error instanceof ConnectionLostError) this.drop(client);
        throw error;
      }
    });
    this.turn = mine.catch(() => undefined);
    return mine;
  }

  /** Whether this process may be the one that projects the ledger: a matter of effort, not of correctness. */
  async holdsLock(sql: Sql, ledger: string): Promise<boolean> {
    if (this.locks.has(ledger)) return true;
    const { rows } = await sql.query<{ locked: boolean }>({
      name: 'projection-lock',
      text: 'SELECT pg_try_advisory_lock($1::bigint) AS locked',
      values: [this.lockOf(ledger)],
    });
    const locked = rows[0]?.locked === true;
    if (locked) this.locks.add(ledger);
    return locked;
  }

  async unlock(ledger: string): Promise<void> {
    if (!this.locks.delete(ledger) || !this.client) return;
    await this.exclusive((sql) => sql.query('SELECT pg_advisory_unlock($1::bigint)', [this.lockOf(ledger)]));
  }

  /** Tells other processes, soon and together with what else moves meanwhile. */
  tell(ledger: string): void {
    this.untold.add(ledger);
    if (this.closed) return;
    this.notifying ??= setTimeout(() => {
      this.notifying = undefined;
      const ledgers = [...this.untold];
      this.untold.clear();
      // What may be lost: followers poll as well.
      this.exclusive((sql) =>
        sql.query('SELECT pg_notify($1, name) FROM unnest($2::text[]) AS name', [this.channel, ledgers]),
      ).catch(() => undefined);
    }, NOTIFY_EVERY_MS);
  }

  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.notifying);
    await this.turn;
    const { client } = this;
    this.client = undefined;
    this.locks.clear();
    await client?.end().catch(() => undefined);
  }

  private get channel(): string {
    return `${this.request.schema}_read_models`;
  }

  private lockOf(ledger: string): string {
    const text = `spend-ledger projection ${this.request.schema} ${ledger}`;
    return createHash('sha256').update(text).digest().readBigInt64BE().toString();
  }

  private async open(): Promise<pg.Client> {
    if (this.client) return this.client;
    if (this.closed) throw new ConnectionLostError('the projection is stopped');
    try {
      const client = await this.request.connect();
      client.on('error', () => {
        this.drop(client);
      });
      client.once('end', () => {
        this.drop(client);
      });
      this.client = client;
      const own = (client as pg.Client & { readonly processID?: number | null }).processID;
      client.on('notification', ({ processId, payload }) => {
        if (processId !== own && payload !== undefined) this.request.onMoved(payload);
      });
      await client.query(`SET statement_timeout = ${String(STATEMENT_TIMEOUT_MS)}`);
      await client.query(`SET lock_timeout = ${String(LOCK_TIMEOUT_MS)}`);
      await client.query(`LISTEN ${client.escapeIdentifier(this.channel)}`);
      return client;
    } catch (cause) {
      if (this.client) this.drop(this.client);
      throw new ConnectionLostError('no connection for the projection', { cause });
    }
  }

  /** Its locks went with it. */
  private drop(client: pg.Client): void {
    if (this.client !== client) return;
    this.client = undefined;
    this.locks.clear();
    client.end().catch(() => undefined);
  }
}
