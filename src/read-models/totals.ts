import type pg from 'pg';
import { activeVersion } from './active-version';
import { WHOLE } from './budgets/bucket-deltas';

/** The numbers of one window of a budget, summed over its buckets. Nano-dollars. */
export interface WindowTotal {
  readonly budget: string;
  readonly generation: number;
  /** `keyOfWindow`: ms since epoch of its beginning, 0 for a lifetime. */
  readonly windowKey: number;
  readonly charged: bigint;
  readonly held: bigint;
  readonly buckets: number;
}

/** What `/verify` compares with a fresh fold of the log up to these positions. Nano-dollars. */
export interface Totals {
  readonly spend: {
    readonly position: number;
    readonly hash: string;
    /** From the attempts, and once more from the cube. */
    readonly charged: bigint;
    readonly chargedInCube: bigint;
    readonly held: bigint;
    readonly heldReservations: number;
  };
  readonly budgets: {
    readonly position: number;
    readonly hash: string;
    readonly windows: readonly WindowTotal[];
  };
}

interface SpendRow {
  readonly position: string;
  readonly hash: string;
  readonly charged: string;
  readonly cube: string;
  readonly held: string;
  readonly holds: string;
}
interface WindowRow {
  readonly position: string;
  readonly hash: string;
  readonly budget: string | null;
  readonly generation: number;
  readonly window_key: string;
  readonly charged: string;
  readonly held: string;
  readonly buckets: string;
}

const SPEND = `WITH c AS (SELECT * FROM read_model_checkpoints WHERE ledger = $1 AND model = 'spend' AND role = 'active')
  SELECT c.position, c.hash, coalesce(a.charged, 0)::text AS charged, coalesce(d.cube, 0)::text AS cube,
         coalesce(a.held, 0)::text AS held, a.holds::text AS holds
    FROM c, LATERAL (SELECT sum(cost) AS charged, sum(amount) FILTER (WHERE state = 'held') AS held,
           count(*) FILTER (WHERE state = 'held') AS holds FROM attempts WHERE ledger = $1 AND version = c.version) AS a,
         LATERAL (SELECT sum(charged) AS cube FROM spend_days WHERE ledger = $1 AND version = c.version) AS d`;

const WINDOWS = `SELECT c.position, c.hash, b.budget, b.generation, b.window_key, sum(b.charged)::text AS charged,
       sum(b.held)::text AS held, count(*)::text AS buckets
  FROM read_model_checkpoints c LEFT JOIN budget_buckets b
    ON b.ledger = c.ledger AND b.version = c.version AND b.part = ${String(WHOLE)}
 WHERE c.ledger = $1 AND c.version = ${activeVersion('budgets')} AND c.model = 'budgets'
 GROUP BY c.position, c.hash, b.budget, b.generation, b.window_key ORDER BY b.budget, b.generation, b.window_key`;

/** Each model's numbers and position are of one moment; undefined where nothing was projected yet. */
export async function readTotals(pool: Pick<pg.Pool, 'query'>, ledger: string): Promise<Totals | undefined> {
  const { rows: spends } = await pool.query<SpendRow>(SPEND, [ledger]);
  const { rows: windows } = await pool.query<WindowRow>(WINDOWS, [ledger]);
  const [spend] = spends;
  const [first] = windows;
  if (!spend || !first) return undefined;
  return {
    spend: {
      position: Number(spend.position),
      hash: spend.hash,
      charged: BigInt(spend.charged),
      chargedInCube: BigInt(spend.cube),
      held: BigInt(spend.held),
      heldReservations: Number(spend.holds),
    },
    budgets: { position: Number(first.position), hash: first.hash, windows: windows.flatMap(totalOf) },
  };
}

function totalOf(row: WindowRow): WindowTotal[] {
  if (row.budget === null) return [];
  return [
    {
      budget: row.budget,
      generation: row.generation,
      windowKey: Number(row.window_key),
      charged: BigInt(row.charged),
      held: BigInt(row.held),
      buckets: Number(row.buckets),
    },
  ];
}
