import type { Memory, ReadModel, Sql } from '../read-model';

export type Role = 'active' | 'building' | 'retired';

/** How far a version of a model's rows has come. */
export interface Checkpoint {
  readonly model: string;
  readonly version: number;
  readonly shape: number;
  readonly role: Role;
  /** Revision of the last event in it; −1 for none. */
  readonly position: number;
  readonly hash: string;
}

/** The hash before the first event. */
export const NO_HASH = '0'.repeat(64);

interface CheckpointRow extends Omit<Checkpoint, 'position'> {
  readonly position: string;
}

export async function readCheckpoints(
  sql: Sql,
  ledger: string,
  role: Role = 'active',
): Promise<Checkpoint[]> {
  const { rows } = await sql.query<CheckpointRow>({
    name: 'checkpoints',
    text: `SELECT model, version, shape, role, position, hash FROM read_model_checkpoints
      WHERE ledger = $1 AND role = $2 ORDER BY model, version`,
    values: [ledger, role],
  });
  return rows.map((row) => ({ ...row, position: Number(row.position) }));
}

/** At first use. Several processes may do it at once: one row a model stays. */
export async function insertCheckpoints(
  sql: Sql,
  ledger: string,
  models: readonly ReadModel[],
): Promise<void> {
  await sql.query(
    `INSERT INTO read_model_checkpoints (ledger, model, version, role, shape, position, hash)
     SELECT $1, row.model, 1, 'active', row.shape, -1, $4 FROM unnest($2::text[], $3::integer[]) AS row (model, shape)
      WHERE NOT EXISTS (SELECT 1 FROM read_model_checkpoints c WHERE c.ledger = $1 AND c.model = row.model)
     ON CONFLICT DO NOTHING`,
    [ledger, models.map(({ name }) => name), models.map(({ shape }) => shape), NO_HASH],
  );
}

export interface Move {
  readonly ledger: string;
  readonly versions: readonly { readonly model: string; readonly version: number; readonly role: Role }[];
  readonly from: number;
  readonly fromHash: string;
  readonly to: number;
  readonly toHash: string;
}

/**
 * The first statement of every batch: moves all of the checkpoints, or fewer where another process was here before.
 * Whoever moves one holds its row until the commit, so the effects of a batch are counted once. Rows are locked in
 * the order of their names. Returns the memory of each model that moved.
 */
export async function moveCheckpoints(sql: Sql, move: Move): Promise<Map<string, Memory>> {
  const { rows } = await sql.query<{ model: string; memory: Memory }>({
    name: 'checkpoints-move',
    text: `WITH wanted AS (
        SELECT c.model, c.version FROM read_model_checkpoints c
          JOIN unnest($2::text[], $3::integer[], $4::text[]) AS named (model, version, role) USING (model, version, role)
         WHERE c.ledger = $1 AND c.position = $5 AND c.hash = $6
         ORDER BY c.model, c.version FOR NO KEY UPDATE OF c)
      UPDATE read_model_checkpoints c SET position = $7, hash = $8 FROM wanted
       WHERE c.ledger = $1 AND c.model = wanted.model AND c.version = wanted.version
      RETURNING c.model, c.memory`,
    values: [
      move.ledger,
      move.versions.map(({ model }) => model),
      move.versions.map(({ version }) => version),
      move.versions.map(({ role }) => role),
      move.from,
      move.fromHash,
      move.to,
      move.toHash,
    ],
  });
  return new Map(rows.map(({ model, memory }) => [model, memory]));
}

export async function keepMemory(
  sql: Sql,
  ledger: string,
  model: string,
  version: number,
  memory: Memory,
): Promise<void> {
  await sql.query(
    'UPDATE read_model_checkpoints SET memory = $4 WHERE ledger = $1 AND model = $2 AND version = $3',
    [ledger, model, version, JSON.stringify(memory)],
  );
}
