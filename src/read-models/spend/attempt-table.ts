import type { Usage } from '../../domain/usage';
import { Columns } from '../columns';
import type { Column } from '../columns';
import type { Batch, Sql } from '../read-model';
import type { AttemptPatch, AttemptRow } from './attempt-row';
import type { Cell } from './spend-days';

const COLUMNS: readonly Column[] = [
  ['revision', 'bigint'],
  ['state', 'text'],
  ['request_id', 'text'],
  ['attempt', 'integer'],
  ['reservation_id', 'text'],
  ['usage_id', 'text'],
  ['provider', 'text'],
  ['account', 'text'],
  ['model', 'text'],
  ['model_id', 'text'],
  ['workload', 'text'],
  ['subject', 'text'],
  ['conversation', 'text'],
  ['tags', 'jsonb'],
  ['job', 'text'],
  ['service_tier', 'text'],
  ['amount', 'bigint'],
  ['counted_at', 'timestamptz'],
  ['day', 'date'],
  ['expires_at', 'timestamptz'],
  ['code', 'text'],
  ['reasons', 'jsonb'],
  ['details', 'jsonb'],
  ['budgets', 'jsonb'],
  ['revisions', 'bigint[]'],
  ['unpriced', 'boolean'],
];
const CHARGE_COLUMNS: readonly Column[] = [
  ['charge_id', 'text'],
  ['charge_revision', 'bigint'],
  ['cost', 'bigint'],
  ['quality', 'text'],
  ['usage', 'jsonb'],
  ['charge', 'jsonb'],
];

const INSERTED = new Columns([...COLUMNS, ...CHARGE_COLUMNS]);
const INSERT = `INSERT INTO attempts (ledger, version, ${INSERTED.names})
  SELECT $1, $2, row.* FROM ${INSERTED.rowset('row', 'revision')}`;

const UPDATED = new Columns([
  ['revision', 'bigint'],
  ['state', 'text'],
  ['expires_at', 'timestamptz'],
  ['unpriced', 'boolean'],
  ...CHARGE_COLUMNS,
  ['revisions', 'bigint[]'],
]);
const UPDATE = `UPDATE attempts a SET
    state = coalesce(row.state, a.state),
    expires_at = coalesce(row.expires_at, a.expires_at),
    unpriced = coalesce(row.unpriced, a.unpriced),
    ${CHARGE_COLUMNS.map(([name]) => `${name} = coalesce(row.${name}, a.${name})`).join(', ')},
    revisions = a.revisions || row.revisions
  FROM ${UPDATED.rowset('row', 'revision')}
 WHERE a.ledger = $1 AND a.version = $2 AND a.revision = row.revision`;

export async function insertAttempts(
  sql: Sql,
  { ledger, version }: Batch,
  rows: readonly AttemptRow[],
): Promise<void> {
  if (rows.length === 0) return;
  const given = rows.map(({ charge, ...row }) => ({ unpriced: false, ...row, ...charge }));
  await sql.query({
    name: 'attempts-insert',
    text: INSERT,
    values: [ledger, version, INSERTED.parameter(given)],
  });
}

/** Throws where a row is missing: the log is contiguous, so whatever a later event names was inserted before. */
export async function updateAttempts(
  sql: Sql,
  { ledger, version }: Batch,
  patches: readonly AttemptPatch[],
): Promise<void> {
  if (patches.length === 0) return;
  const given = patches.map(({ charge, ...patch }) => ({ ...patch, ...charge }));
  const { rowCount } = await sql.query({
    name: 'attempts-update',
    text: UPDATE,
    values: [ledger, version, UPDATED.parameter(given)],
  });
  if (rowCount !== patches.length) {
    const detail = `${String(patches.length)} rows of attempts to change, ${String(rowCount)} found`;
    throw new Error(`${detail}, the first at revision ${String(patches[0]?.revision)}`);
  }
}

/** What a correction must know of the charge it corrects. */
export interface ChargedRow {
  readonly revision: number;
  readonly chargeRevision: number;
  readonly isReservation: boolean;
  readonly usage: Usage;
  readonly unpriced: boolean;
  readonly cell: Cell;
}

interface StoredCharge {
  readonly revision: string;
  readonly charge_revision: string;
  readonly state: string;
  readonly usage: Usage;
  readonly unpriced: boolean;
  readonly day: string;
  readonly provider: string;
  readonly account: string;
  readonly model: string;
  readonly workload: string;
}

/** The rows of charges, by the revision in the charges' ids. */
export async function readCharges(
  sql: Sql,
  { ledger, version }: Batch,
  chargeRevisions: readonly number[],
): Promise<ChargedRow[]> {
  if (chargeRevisions.length === 0) return [];
  const { rows } = await sql.query<StoredCharge>({
    name: 'attempts-charges',
    text: `SELECT revision, charge_revision, state, usage, unpriced, day::text AS day, provider, account,
        coalesce(model_id, model) AS model, coalesce(workload, '') AS workload
      FROM attempts WHERE ledger = $1 AND version = $2 AND charge_revision = ANY ($3::bigint[])`,
    values: [ledger, version, chargeRevisions],
  });
  return rows.map(({ day, provider, account, model, workload, ...row }) => ({
    revision: Number(row.revision),
    chargeRevision: Number(row.charge_revision),
    isReservation: row.state !== 'charged',
    usage: row.usage,
    unpriced: row.unpriced,
    cell: { day, provider, account, model, workload },
  }));
}
