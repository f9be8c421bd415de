import type pg from 'pg';
import { formatMoney } from '../../domain/money';
import { USAGE_CLASSES } from '../../domain/usage';
import type { UsageClass } from '../../domain/usage';
import { activeVersion } from '../active-version';
import { decodeCursor, limitOf, pageOf } from '../paging';
import type { Page, PageRequest } from '../paging';
import { USAGE_COLUMNS } from './spend-days';

export const SPEND_DIMENSIONS = [
  'day',
  'provider',
  'account',
  'model',
  'workload',
  'subject',
  'conversation',
] as const;
export type SpendDimension = (typeof SPEND_DIMENSIONS)[number];

export interface SpendRequest extends PageRequest {
  /** Civil days in the ledger's timezone, `YYYY-MM-DD`: from inclusive, to exclusive. */
  readonly fromDay?: string;
  readonly toDay?: string;
  /** In the order of the answer; none: one row over all. */
  readonly by: readonly SpendDimension[];
}

/** Amounts decimal USD. A dimension that attempts of the group did not name is absent. */
export type SpendGroup = Partial<Readonly<Record<SpendDimension, string>>> & {
  readonly charged: string;
  readonly held: string;
  readonly charges: number;
  readonly reservations: number;
  readonly refusals: number;
  /** What the refused checks had estimated. */
  readonly refusedAmount: string;
  /** Charges that wait for a price. */
  readonly unpriced: number;
  readonly usage: Readonly<Partial<Record<UsageClass, number>>>;
};

const MEASURES = [
  'reserved_count',
  'refused_count',
  'refused_amount',
  'charge_count',
  'charged',
  'held',
  'unpriced_count',
  ...Object.values(USAGE_COLUMNS),
] as const;

const BETWEEN = '($2::date IS NULL OR day >= $2) AND ($3::date IS NULL OR day < $3)';
const OF_LEDGER = `ledger = $1 AND version = ${activeVersion('spend')}`;
const NO_USAGE = Object.values(USAGE_COLUMNS)
  .map((name) => `0 AS ${name}`)
  .join(', ');

/** The cube, and what is held now: few rows, found by their index. */
const FROM_CUBE = `SELECT day, provider, account, model, workload, ${MEASURES.map((name) => (name === 'held' ? '0 AS held' : name)).join(', ')}
    FROM spend_days WHERE ${OF_LEDGER} AND ${BETWEEN}
  UNION ALL
  SELECT day, provider, account, coalesce(model_id, model), coalesce(workload, ''), 0, 0, 0, 0, 0, amount, 0, ${NO_USAGE}
    FROM attempts WHERE ${OF_LEDGER} AND state = 'held' AND ${BETWEEN}`;

/** Subjects and conversations are too many for a cube: their numbers come from the attempts themselves. */
const FROM_ATTEMPTS = `SELECT day, provider, account, coalesce(model_id, model) AS model, coalesce(workload, '') AS workload,
    coalesce(subject, '') AS subject, coalesce(conversation, '') AS conversation,
    (state NOT IN ('refused', 'charged'))::int AS reserved_count,
    (state = 'refused')::int AS refused_count,
    CASE WHEN state = 'refused' THEN coalesce(amount, 0) ELSE 0 END AS refused_amount,
    (cost IS NOT NULL)::int AS charge_count, coalesce(cost, 0) AS charged,
    CASE WHEN state = 'held' THEN amount ELSE 0 END AS held, unpriced::int AS unpriced_count,
    ${USAGE_CLASSES.map((name) => `coalesce((usage ->> '${name}')::bigint, 0) AS ${USAGE_COLUMNS[name]}`).join(', ')}
  FROM attempts WHERE ${OF_LEDGER} AND state <> 'asked' AND ${BETWEEN}`;

type SpendRow = Record<string, string>;

/** Actual spend, what is held, and what was refused, grouped. */
export class SpendQueries {
  constructor(private readonly pool: Pick<pg.Pool, 'query'>) {}

  /** Groups in the order of their dimensions. Throws InvalidCursorError. */
  async spend(ledger: string, request: SpendRequest): Promise<Page<SpendGroup>> {
    const by = SPEND_DIMENSIONS.filter((dimension) => request.by.includes(dimension));
    const limit = limitOf(request);
    const after = decodeCursor(request, by.length);
    const source = by.some((each) => each === 'subject' || each === 'conversation')
      ? FROM_ATTEMPTS
      : FROM_CUBE;
    const named = by.map((each) => (each === 'day' ? 'day::text AS day' : each));
    const grouped = by.length === 0 ? '' : `GROUP BY ${by.join(', ')} ORDER BY ${by.join(', ')}`;
    const behind = after
      ? `WHERE (${by.join(', ')}) > (${after.map((_, i) => `$${String(i + 5)}`).join(', ')})`
      : '';
    const { rows } = await this.pool.query<SpendRow>(
      `SELECT ${[...named, ...MEASURES.map((name) => `coalesce(sum(${name}), 0)::text AS ${name}`)].join(', ')}
         FROM (${source}) AS spend ${behind} ${grouped} LIMIT $4`,
      [ledger, request.fromDay ?? null, request.toDay ?? null, limit + 1, ...(after ?? [])],
    );
    return pageOf(
      rows,
      limit,
      (row) => by.map((dimension) => row[dimension] ?? ''),
      (row) => groupOf(row, by),
    );
  }
}

function groupOf(row: SpendRow, by: readonly SpendDimension[]): SpendGroup {
  const usd = (name: string): string => formatMoney(BigInt(row[name] ?? '0'));
  const count = (name: string): number => Number(row[name] ?? '0');
  const usage: Partial<Record<UsageClass, number>> = {};
  for (const usageClass of USAGE_CLASSES) {
    const units = count(USAGE_COLUMNS[usageClass]);
    if (units !== 0) usage[usageClass] = units;
  }
  return {
    ...Object.fromEntries(by.flatMap((dimension) => (row[dimension] ? [[dimension, row[dimension]]] : []))),
    charged: usd('charged'),
    held: usd('held'),
    charges: count('charge_count'),
    reservations: count('reserved_count'),
    refusals: count('refused_count'),
    refusedAmount: usd('refused_amount'),
    unpriced: count('unpriced_count'),
    usage,
  };
}
