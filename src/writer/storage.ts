import type pg from 'pg';

/** A ledger's state at a confirmed revision. */
export interface Snapshot {
  readonly ledger: string;
  /** Of the last event in it. */
  readonly revision: number;
  /** Shape of the state; another shape is not read. */
  readonly schemaVersion: number;
  /** Of the last event in it. */
  readonly hash: string;
  /** ms since epoch of the last event in it. */
  readonly atMs: number;
  /** gzip of the state's JSON text. */
  readonly body: Buffer;
}

/** What the writer keeps beside the log: which ledgers there are, and snapshots that may be lost at any time. */
export interface WriterStorage {
  /** Idempotent. */
  registerLedger(id: string): Promise<void>;
  /** In the order of their ids. */
  ledgers(): Promise<string[]>;
  saveSnapshot(snapshot: Snapshot): Promise<void>;
  /** The newest of a shape, at or below a revision and moment where these are given. */
  newestSnapshot(ledger: string, schemaVersion: number, until?: SnapshotBound): Promise<Snapshot | undefined>;
  dropSnapshot(ledger: string, revision: number): Promise<void>;
}

export interface SnapshotBound {
  readonly revision?: number;
  readonly atMs?: number;
}

/** Of the history one snapshot in this many revisions stays, beside the newest two. */
const HISTORY_STEP = 250_000;

interface SnapshotRow {
  readonly ledger: string;
  readonly revision: string;
  readonly schema_version: number;
  readonly hash: string;
  readonly at: Date;
  readonly body: Buffer;
}

export class PostgresWriterStorage implements WriterStorage {
  constructor(private readonly pool: Pick<pg.Pool, 'query'>) {}

  async registerLedger(id: string): Promise<void> {
    await this.pool.query('INSERT INTO ledgers (id) VALUES ($1) ON CONFLICT (id) DO NOTHING', [id]);
  }

  async ledgers(): Promise<string[]> {
    const { rows } = await this.pool.query<{ id: string }>('SELECT id FROM ledgers ORDER BY id');
    return rows.map(({ id }) => id);
  }

  async saveSnapshot({ ledger, revision, schemaVersion, hash, atMs, body }: Snapshot): Promise<void> {
    await this.pool.query(
      `INSERT INTO snapshots (ledger, revision, schema_version, hash, at, body) VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (ledger, revision) DO UPDATE SET schema_version = excluded.schema_version,
         hash = excluded.hash, at = excluded.at, body = excluded.body`,
      [ledger, revision, schemaVersion, hash, new Date(atMs), body],
    );
    await this.pool.query(
      `DELETE FROM snapshots old WHERE old.ledger = $1 AND old.schema_version <= $2
         AND (old.schema_version < $2 OR (
           old.revision < (SELECT revision FROM snapshots WHERE ledger = $1 AND schema_version = $2
                            ORDER BY revision DESC OFFSET 1 LIMIT 1)
           AND EXISTS (SELECT 1 FROM snapshots kept WHERE kept.ledger = $1 AND kept.schema_version = $2
                         AND kept.revision < old.revision
                         AND kept.revision / $3::bigint = old.revision / $3::bigint)))`,
      [ledger, schemaVersion, HISTORY_STEP],
    );
  }

  async newestSnapshot(
    ledger: string,
    schemaVersion: number,
    until: SnapshotBound = {},
  ): Promise<Snapshot | undefined> {
    const { rows } = await this.pool.query<SnapshotRow>(
      `SELECT ledger, revision, schema_version, hash, at, body FROM snapshots
        WHERE ledger = $1 AND schema_version = $2
          AND ($3::bigint IS NULL OR revision <= $3) AND ($4::timestamptz IS NULL OR at <= $4)
        ORDER BY revision DESC LIMIT 1`,
      [ledger, schemaVersion, until.revision ?? null, until.atMs === undefined ? null : new Date(until.atMs)],
    );
    const row = rows[0];
    if (!row) return undefined;
    const { hash, at, body } = row;
    return {
      ledger,
      revision: Number(row.revision),
      schemaVersion,
      hash,
      atMs: at.getTime(),
      body,
    };
  }

  async dropSnapshot(ledger: string, revision: number): Promise<void> {
    await this.pool.query('DELETE FROM snapshots WHERE ledger = $1 AND revision = $2', [ledger, revision]);
  }
}
