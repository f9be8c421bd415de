import type { BudgetDefinition } from '../../domain/budget';
import { toMs, toTime } from '../../domain/windows';
import { Columns } from '../columns';
import type { Batch, Memory, ReadModel, Sql } from '../read-model';
import { BudgetFold, budgetsNamed } from './budget-fold';
import type { StoredBudget } from './budget-fold';

/** Budgets as they are defined, and what is charged and held in their buckets. */
export const budgetsModel: ReadModel = {
  name: 'budgets',
  shape: 1,
  tables: ['budgets', 'budget_buckets'],
  apply: async (sql: Sql, batch: Batch): Promise<Memory> => {
    const fold = new BudgetFold(await readBudgets(sql, batch, budgetsNamed(batch.events)));
    for (const event of batch.events) fold.add(event);
    await writeBudgets(sql, batch, [...fold.changed.values()]);
    await fold.deltas.write(sql, batch);
    return batch.memory;
  },
};

const COLUMNS = new Columns([
  ['id', 'text'],
  ['generation', 'integer'],
  ['retired', 'boolean'],
  ['definition', 'jsonb'],
  ['counted_from', 'bigint'],
  ['opening_revision', 'bigint'],
  ['opening_at', 'timestamptz'],
  ['revision', 'bigint'],
]);
const UPSERT = `INSERT INTO budgets (ledger, version, ${COLUMNS.names})
  SELECT $1, $2, row.* FROM ${COLUMNS.rowset('row', 'id')}
  ON CONFLICT (ledger, version, id) DO UPDATE SET generation = excluded.generation, retired = excluded.retired,
    definition = excluded.definition, counted_from = excluded.counted_from, revision = excluded.revision,
    opening_revision = excluded.opening_revision, opening_at = excluded.opening_at`;

interface BudgetRow {
  readonly id: string;
  readonly generation: number;
  readonly retired: boolean;
  readonly definition: BudgetDefinition;
  readonly counted_from: string;
  readonly opening_revision: string;
  readonly opening_at: Date;
  readonly revision: string;
}

async function readBudgets(
  sql: Sql,
  { ledger, version }: Batch,
  ids: readonly string[],
): Promise<StoredBudget[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql.query<BudgetRow>({
    name: 'budgets-named',
    text: `SELECT id, generation, retired, definition, counted_from, opening_revision, opening_at, revision
      FROM budgets WHERE ledger = $1 AND version = $2 AND id = ANY ($3::text[])`,
    values: [ledger, version, ids],
  });
  return rows.map((row) => ({
    id: row.id,
    generation: row.generation,
    retired: row.retired,
    definition: row.definition,
    countedFrom: Number(row.counted_from),
    openingRevision: Number(row.opening_revision),
    openingAtMs: toMs(row.opening_at.toISOString()),
    revision: Number(row.revision),
  }));
}

async function writeBudgets(
  sql: Sql,
  { ledger, version }: Batch,
  budgets: readonly StoredBudget[],
): Promise<void> {
  if (budgets.length === 0) return;
  const rows = budgets.map((budget) => ({
    id: budget.id,
    generation: budget.generation,
    retired: budget.retired,
    definition: budget.definition,
    counted_from: budget.countedFrom,
    opening_revision: budget.openingRevision,
    opening_at: toTime(budget.openingAtMs),
    revision: budget.revision,
  }));
  await sql.query(UPSERT, [ledger, version, COLUMNS.parameter(rows)]);
}
