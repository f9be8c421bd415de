import { USAGE_CLASSES } from '../../domain/usage';
import type { Usage, UsageClass } from '../../domain/usage';
import { Columns } from '../columns';
import type { Column } from '../columns';
import type { Batch, Sql } from '../read-model';

/** The column of each usage class. */
export const USAGE_COLUMNS: Readonly<Record<UsageClass, string>> = {
  inputTokens: 'input_tokens',
  cacheReadTokens: 'cache_read_tokens',
  cacheWrite5mTokens: 'cache_write_5m_tokens',
  cacheWrite1hTokens: 'cache_write_1h_tokens',
  outputTokens: 'output_tokens',
  audioInputTokens: 'audio_input_tokens',
  audioOutputTokens: 'audio_output_tokens',
  images: 'images',
  audioSeconds: 'audio_seconds',
  searches: 'searches',
};

/** A cell of the cube. */
export interface Cell {
  readonly day: string;
  readonly provider: string;
  readonly account: string;
  /** The catalogue's id where known. */
  readonly model: string;
  /** '' for none. */
  readonly workload: string;
}

export interface Delta {
  reserved?: number;
  refused?: number;
  refusedAmount?: bigint;
  charges?: number;
  charged?: bigint;
  unpriced?: number;
  usage?: Usage;
  /** Usage that no longer counts, because it was corrected. */
  formerUsage?: Usage;
}

const MEASURES = [
  'reserved_count',
  'refused_count',
  'refused_amount',
  'charge_count',
  'charged',
  'unpriced_count',
  ...Object.values(USAGE_COLUMNS),
];

const CELL: readonly Column[] = [
  ['day', 'date'],
  ['provider', 'text'],
  ['account', 'text'],
  ['model', 'text'],
  ['workload', 'text'],
];
const COLUMNS = new Columns([...CELL, ...MEASURES.map((name) => [name, 'bigint'] as const)]);
const KEY = CELL.map(([name]) => name).join(', ');
const UPSERT = `INSERT INTO spend_days AS s (ledger, version, ${COLUMNS.names})
  SELECT $1, $2, row.* FROM ${COLUMNS.rowset('row', KEY)}
  ON CONFLICT (ledger, version, ${KEY})
  DO UPDATE SET ${MEASURES.map((name) => `${name} = s.${name} + excluded.${name}`).join(', ')}`;

/** What a batch adds to the cube, a row a cell. */
export class SpendDays {
  private readonly cells = new Map<string, { cell: Cell; sums: Map<string, bigint> }>();

  add(cell: Cell, delta: Delta): void {
    const sums = this.sumsOf(cell);
    const plus = (column: string, amount: bigint | number | undefined): void => {
      if (amount) sums.set(column, (sums.get(column) ?? 0n) + BigInt(amount));
    };
    plus('reserved_count', delta.reserved);
    plus('refused_count', delta.refused);
    plus('refused_amount', delta.refusedAmount);
    plus('charge_count', delta.charges);
    plus('charged', delta.charged);
    plus('unpriced_count', delta.unpriced);
    for (const usageClass of USAGE_CLASSES) {
      plus(USAGE_COLUMNS[usageClass], delta.usage?.[usageClass]);
      plus(USAGE_COLUMNS[usageClass], -(delta.formerUsage?.[usageClass] ?? 0));
    }
  }

  /** One statement; nothing where nothing changed. */
  async write(sql: Sql, { ledger, version }: Batch): Promise<void> {
    if (this.cells.size === 0) return;
    const rows = [...this.cells.values()].map(({ cell, sums }) => {
      const row: Record<string, string> = { ...cell };
      for (const measure of MEASURES) row[measure] = (sums.get(measure) ?? 0n).toString();
      return row;
    });
    await sql.query({ name: 'spend-days', text: UPSERT, values: [ledger, version, COLUMNS.parameter(rows)] });
  }

  private sumsOf(cell: Cell): Map<string, bigint> {
    const key = JSON.stringify([cell.day, cell.provider, cell.account, cell.model, cell.workload]);
    let found = this.cells.get(key);
    if (!found) {
      found = { cell, sums: new Map() };
      this.cells.set(key, found);
    }
    return found.sums;
  }
}
