import type pg from 'pg';
import type { EventSource } from '../event-source';
import { LogBrokenError } from '../read-model';
import type { ReadModel, Sql } from '../read-model';
import { applicable, applyStep, runStep } from './batch-step';
import { NO_HASH, readCheckpoints } from './checkpoints';
import type { Checkpoint } from './checkpoints';
import { transaction } from './transaction';

export interface RebuildProgress {
  readonly ledger: string;
  readonly model: string;
  /** Revision of the last event applied; −1 at the beginning. */
  readonly position: number;
  /** Of the last event in the log. */
  readonly head: number;
  readonly eventsPerSecond: number;
}

export interface RebuildRequest {
  readonly ledger: string;
  readonly model: ReadModel;
  readonly source: EventSource;
  /** A connection is taken for one batch at a time. */
  readonly pool: Pick<pg.Pool, 'connect'>;
  readonly batchSize?: number;
  /** Goes on where a former rebuild by the same code was stopped; otherwise from the beginning. */
  readonly resume?: boolean;
  readonly onProgress?: (progress: RebuildProgress) => void;
  /** Ends it at the next batch; what was built stays for `resume`. */
  readonly signal?: AbortSignal;
}

const BATCH_SIZE = 2_000;
const ROWS_DROPPED_AT_ONCE = 5_000;

/**
 * Builds a model anew from the log beside the rows that are served, swaps them in one transaction when it has caught
 * up, and drops the old ones. Readers and the feed go on meanwhile, in this process or another: the feed notices at its next
 * batch. Throws where the log cannot be applied; the served rows are then untouched.
 */
export async function rebuild(request: RebuildRequest): Promise<void> {
  const { ledger, model, source, signal } = request;
  const startedAt = performance.now();
  let checkpoint = await inTurn(request, (sql) => begin(sql, request));
  const startedFrom = checkpoint.position;
  for (;;) {
    signal?.throwIfAborted();
    const head = await source.head(ledger);
    const seconds = Math.max((performance.now() - startedAt) / 1000, 0.001);
    const eventsPerSecond = Math.round((checkpoint.position - startedFrom) / seconds);
    request.onProgress?.({ ledger, model: model.name, position: checkpoint.position, head, eventsPerSecond });
    const isBehind = await advance(request, checkpoint);
    const { version } = checkpoint;
    if (!isBehind && (await inTurn(request, (sql) => transaction(sql, () => swap(sql, request, version)))))
      break;
    checkpoint = await inTurn(request, (sql) => readOwn(sql, request, version));
  }
  await dropRetired(request);
}

async function inTurn<T>({ pool }: RebuildRequest, work: (sql: Sql) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken = true;
  try {
    const result = await work(client);
    broken = false;
    return result;
  } finally {
    client.release(broken);
  }
}

/** The checkpoint to build from: a new one, or that of a rebuild which was stopped. */
async function begin(sql: Sql, { ledger, model, resume }: RebuildRequest): Promise<Checkpoint> {
  const building = (await readCheckpoints(sql, ledger, 'building')).filter(
    (each) => each.model === model.name,
  );
  const known = resume ? building.find(({ shape }) => shape === model.shape) : undefined;
  const others = building.filter((each) => each !== known).map(({ version }) => version);
  await sql.query(
    `UPDATE read_model_checkpoints SET role = 'retired'
      WHERE ledger = $1 AND model = $2 AND role = 'building' AND version = ANY ($3::integer[])`,
    [ledger, model.name, others],
  );
  if (known) return known;
  const { rows } = await sql.query<{ version: number }>(
    `INSERT INTO read_model_checkpoints (ledger, model, version, role, shape, position, hash)
     SELECT $1, $2, coalesce(max(version), 0) + 1, 'building', $3, -1, $4 FROM read_model_checkpoints
      WHERE ledger = $1 AND model = $2
     RETURNING version`,
    [ledger, model.name, model.shape, NO_HASH],
  );
  const version = rows[0]?.version;
  if (version === undefined) throw new Error('no version to build');
  return { model: model.name, version, shape: model.shape, role: 'building', position: -1, hash: NO_HASH };
}

/** Another rebuild that began later took over, or an operator removed the row. */
async function readOwn(sql: Sql, { ledger, model }: RebuildRequest, version: number): Promise<Checkpoint> {
  const own = (await readCheckpoints(sql, ledger, 'building')).find(
    (each) => each.model === model.name && each.version === version,
  );
  if (!own) throw new Error(`the rebuild of ${model.name} was replaced by another`);
  return own;
}

/** Applies the next batch; false where it came near the head: on a busy ledger there is always something new. */
async function advance(request: RebuildRequest, { position, version, hash }: Checkpoint): Promise<boolean> {
  const { ledger, model, source, batchSize = BATCH_SIZE } = request;
  const events = applicable(await source.read(ledger, position + 1, batchSize), position);
  const [first] = events;
  if (!first) return false;
  if (first.metadata.previousHash !== hash) {
    throw new LogBrokenError(`the hash chain of the log is broken at revision ${String(first.revision)}`);
  }
  const targets = [{ model, version, role: 'building' as const }];
  await inTurn(request, (sql) => runStep(sql, { ledger, targets, events }));
  return events.length === batchSize;
}

/**
 * Makes the new rows the served ones, in the caller's transaction. The feed is held off by the row lock while the last few
 * events are applied, so the new rows are never behind what was served before.
 */
async function swap(sql: Sql, request: RebuildRequest, version: number): Promise<boolean> {
  const { ledger, model, source, batchSize = BATCH_SIZE } = request;
  const { rows } = await sql.query<{ version: number; role: string; position: string }>(
    `SELECT version, role, position FROM read_model_checkpoints
      WHERE ledger = $1 AND model = $2 AND (role = 'active' OR version = $3) ORDER BY version FOR NO KEY UPDATE`,
    [ledger, model.name, version],
  );
  const own = rows.find((row) => row.version === version && row.role === 'building');
  if (!own) return false;
  const served = rows.find(({ role }) => role === 'active');
  const position = Number(own.position);
  const missing = served === undefined ? 0 : Number(served.position) - position;
  if (missing > batchSize) return false;
  if (missing > 0) {
    const events = applicable(await source.read(ledger, position + 1, missing), position);
    const targets = [{ model, version, role: 'building' as const }];
    if (events.length < missing || !(await applyStep(sql, { ledger, targets, events }))) return false;
  }
  const give = `UPDATE read_model_checkpoints SET role = $4 WHERE ledger = $1 AND model = $2 AND version = $3`;
  if (served) await sql.query(give, [ledger, model.name, served.version, 'retired']);
  await sql.query(give, [ledger, model.name, version, 'active']);
  await sql.query("SELECT pg_notify(current_schema() || '_read_models', $1)", [ledger]);
  return true;
}

/** Removes the rows of versions that are no longer served, a few thousand at a time. */
export async function dropRetired(request: RebuildRequest): Promise<void> {
  const { ledger, model } = request;
  const retired = await inTurn(request, (sql) => readCheckpoints(sql, ledger, 'retired'));
  for (const { version } of retired.filter((each) => each.model === model.name)) {
    for (const table of model.tables) {
      const text = `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ${table} WHERE ledger = $1 AND version = $2 LIMIT ${String(ROWS_DROPPED_AT_ONCE)}))`;
      let dropped: number | null;
      do {
        dropped = (await inTurn(request, (sql) => sql.query(text, [ledger, version]))).rowCount;
      } while (dropped === ROWS_DROPPED_AT_ONCE);
    }
    await inTurn(request, (sql) =>
      sql.query(
        `DELETE FROM read_model_checkpoints WHERE ledger = $1 AND model = $2 AND version = $3 AND role = 'retired'`,
        [ledger, model.name, version],
      ),
    );
  }
}
