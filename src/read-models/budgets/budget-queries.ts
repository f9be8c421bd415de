import type pg from 'pg';
import type { Bucket, BudgetDefinition, BudgetPlace, Window } from '../../domain/budget';
import { formatMoney, parseMoney } from '../../domain/money';
import { DEFAULT_SETTINGS } from '../../domain/settings';
import { keyOfWindow, recurs, toWindow, windowAt, windowKey } from '../../domain/windows';
import { activeVersion } from '../active-version';
import { decodeCursor, limitOf, pageOf } from '../paging';
import type { Page, PageRequest } from '../paging';
import { WHOLE, bucketKeyText } from './bucket-deltas';

/** Amounts decimal USD. */
export interface Numbers {
  readonly charged: string;
  readonly held: string;
}

/** The current window of a budget; with `each`, sums over its buckets, `limit` included. */
export interface CurrentBalance extends Numbers {
  readonly window: Window;
  readonly limit: string;
  /** limit − charged − held; may be negative. */
  readonly remaining: string;
  /** When another window begins; absent where none does. */
  readonly resetsAt?: string;
  /** By set-aside index. */
  readonly setAsides: readonly Numbers[];
  /** How many buckets have numbers, with `each`. */
  readonly buckets?: number;
}

export interface BudgetView {
  readonly budget: BudgetDefinition;
  readonly generation: number;
  readonly retired: boolean;
  /** Absent where it is retired. */
  readonly current?: CurrentBalance;
}

export interface BucketView extends Numbers {
  readonly bucket?: Bucket;
  readonly window: Window;
  readonly limit: string;
  readonly remaining: string;
  readonly resetsAt?: string;
}

/** The numbers of one bucket; nano-dollars. */
export interface BucketNumbers {
  readonly charged: bigint;
  readonly held: bigint;
  readonly setAsides: readonly { readonly index: number; readonly charged: bigint; readonly held: bigint }[];
}

/** A budget that stands, without its numbers. */
export interface StandingBudget {
  readonly definition: BudgetDefinition;
  readonly generation: number;
}

interface BudgetRow {
  readonly id: string;
  readonly generation: number;
  readonly retired: boolean;
  readonly definition: BudgetDefinition;
  readonly timezone: string | null;
}
interface SumRow {
  readonly budget: string;
  readonly part: number;
  readonly charged: string;
  readonly held: string;
  readonly buckets: string;
}
interface BucketRow {
  readonly bucket_key: string;
  readonly bucket: Bucket | null;
  readonly charged: string;
  readonly held: string;
}

const OF_BUDGETS = `ledger = $1 AND version = ${activeVersion('budgets')}`;
const TIMEZONE = `(SELECT settings ->> 'timezone' FROM ledger_settings
  WHERE ledger = $1 AND version = ${activeVersion('settings')}) AS timezone`;

/** Budgets with what is charged and held in their current windows. Moments are ms since epoch. */
export class BudgetQueries {
  constructor(private readonly pool: Pick<pg.Pool, 'query'>) {}

  /** By id; retired ones only when asked for. Throws InvalidCursorError. */
  async list(
    ledger: string,
    nowMs: number,
    page: PageRequest & { readonly includeRetired?: boolean },
  ): Promise<Page<BudgetView>> {
    const after = decodeCursor(page, 1)?.[0];
    const limit = limitOf(page);
    const { rows } = await this.pool.query<BudgetRow>(
      `SELECT id, generation, retired, definition, ${TIMEZONE} FROM budgets
        WHERE ${OF_BUDGETS} AND ($2::text IS NULL OR id > $2) AND (NOT retired OR $3) ORDER BY id LIMIT $4`,
      [ledger, after ?? null, page.includeRetired ?? false, limit + 1],
    );
    const views = await this.withCurrent(ledger, rows.slice(0, limit), nowMs);
    const byId = new Map(views.map((view) => [view.budget.id, view]));
    const { data, nextCursor } = pageOf(
      rows,
      limit,
      ({ id }) => [id],
      ({ id }) => byId.get(id),
    );
    const found = data.filter((view) => view !== undefined);
    return nextCursor === undefined ? { data: found } : { data: found, nextCursor };
  }

  /** Undefined where no such budget was ever defined. */
  async budget(ledger: string, id: string, nowMs: number): Promise<BudgetView | undefined> {
    const [view] = await this.withCurrent(ledger, await this.rows(ledger, id), nowMs);
    return view;
  }

  /** One entry a bucket of the current window that has numbers; undefined where the budget is not known. Throws InvalidCursorError. */
  async balances(
    ledger: string,
    id: string,
    nowMs: number,
    page: PageRequest,
  ): Promise<Page<BucketView> | undefined> {
    const [budget] = await this.rows(ledger, id);
    if (!budget) return undefined;
    const { definition } = budget;
    const span = spanOf(budget, nowMs);
    const window = toWindow(span);
    const after = decodeCursor(page, 1)?.[0];
    const limit = limitOf(page);
    const { rows } = await this.pool.query<BucketRow>(
      `SELECT bucket_key, bucket, charged, held FROM budget_buckets
        WHERE ${OF_BUDGETS} AND budget = $2 AND generation = $3 AND window_key = $4 AND part = ${String(WHOLE)}
          AND ($5::text IS NULL OR bucket_key > $5) ORDER BY bucket_key LIMIT $6`,
      [ledger, id, budget.generation, windowKey(span), after ?? null, limit + 1],
    );
    return pageOf(
      rows,
      limit,
      ({ bucket_key: key }) => [key],
      ({ bucket, charged, held }) => {
        const left = parseMoney(definition.limit) - BigInt(charged) - BigInt(held);
        return {
          ...(bucket && { bucket }),
          window,
          limit: definition.limit,
          charged: formatMoney(BigInt(charged)),
          held: formatMoney(BigInt(held)),
          remaining: formatMoney(left),
          ...resetOf(window),
        };
      },
    );
  }

  /** Changes whenever a budget of the ledger is defined, amended or retired. */
  async lastChange(ledger: string): Promise<string> {
    const { rows } = await this.pool.query<{ mark: string }>(
      `SELECT concat_ws(' ', max(version), count(*), max(revision)) AS mark FROM budgets WHERE ${OF_BUDGETS}`,
      [ledger],
    );
    return rows[0]?.mark ?? '';
  }

  /** Every budget that is not retired, by id. */
  async standing(ledger: string): Promise<StandingBudget[]> {
    const { rows } = await this.pool.query<StandingBudget>(
      `SELECT definition, generation FROM budgets WHERE ${OF_BUDGETS} AND NOT retired ORDER BY id`,
      [ledger],
    );
    return rows;
  }

  /** The numbers of places, in their order; zero where nothing was counted yet. For `/headroom`. */
  async bucketBalances(ledger: string, places: readonly BudgetPlace[]): Promise<BucketNumbers[]> {
    const { rows } = await this.pool.query<{ place: string; part: number; charged: string; held: string }>(
      `SELECT wanted.place, b.part, b.charged, b.held
         FROM unnest($2::text[], $3::integer[], $4::bigint[], $5::text[]) WITH ORDINALITY
              AS wanted (budget, generation, window_key, bucket_key, place)
         JOIN budget_buckets b USING (budget, generation, window_key, bucket_key)
        WHERE b.ledger = $1 AND b.version = ${activeVersion('budgets')} ORDER BY wanted.place, b.part`,
      [
        ledger,
        places.map(({ id }) => id),
        places.map(({ generation }) => generation),
        places.map(({ window }) => keyOfWindow(window)),
        places.map(({ bucket }) => bucketKeyText(bucket)),
      ],
    );
    return places.map((_, i) => {
      const parts = rows
        .filter(({ place }) => Number(place) === i + 1)
        .map(({ part, charged, held }) => ({ index: part, charged: BigInt(charged), held: BigInt(held) }));
      const whole = parts.find(({ index }) => index === WHOLE);
      const setAsides = parts.filter(({ index }) => index !== WHOLE);
      return { charged: whole?.charged ?? 0n, held: whole?.held ?? 0n, setAsides };
    });
  }

  private async rows(ledger: string, id: string): Promise<BudgetRow[]> {
    const { rows } = await this.pool.query<BudgetRow>(
      `SELECT id, generation, retired, definition, ${TIMEZONE} FROM budgets WHERE ${OF_BUDGETS} AND id = $2`,
      [ledger, id],
    );
    return rows;
  }

  private async withCurrent(
    ledger: string,
    budgets: readonly BudgetRow[],
    nowMs: number,
  ): Promise<BudgetView[]> {
    const spans = budgets.map((budget) => spanOf(budget, nowMs));
    const { rows } = await this.pool.query<SumRow>(
      `SELECT budget, b.part, sum(b.charged)::text AS charged, sum(b.held)::text AS held, count(*)::text AS buckets
         FROM unnest($2::text[], $3::integer[], $4::bigint[]) AS wanted (budget, generation, window_key)
         JOIN budget_buckets b USING (budget, generation, window_key)
        WHERE b.ledger = $1 AND b.version = ${activeVersion('budgets')} GROUP BY budget, b.part`,
      [
        ledger,
        budgets.map(({ id }) => id),
        budgets.map(({ generation }) => generation),
        spans.map((span) => windowKey(span)),
      ],
    );
    return budgets.map((budget, i) => {
      const { definition, generation, retired } = budget;
      const window = toWindow(spans[i] ?? { kind: 'lifetime' });
      const sums = rows.filter((row) => row.budget === budget.id);
      return {
        budget: definition,
        generation,
        retired,
        ...(!retired && { current: current(definition, window, sums) }),
      };
    });
  }
}

const spanOf = ({ definition, timezone }: BudgetRow, nowMs: number) =>
  windowAt(definition.window, timezone ?? DEFAULT_SETTINGS.timezone, nowMs);

const resetOf = ({ kind, to }: Window) => (recurs(kind) && to !== undefined ? { resetsAt: to } : {});

function current(definition: BudgetDefinition, window: Window, sums: readonly SumRow[]): CurrentBalance {
  const numbers = (part: number) => {
    const sum = sums.find((row) => row.part === part);
    return {
      charged: BigInt(sum?.charged ?? '0'),
      held: BigInt(sum?.held ?? '0'),
      buckets: Number(sum?.buckets ?? '0'),
    };
  };
  const { charged, held, buckets } = numbers(WHOLE);
  const hasBuckets = definition.each.length > 0;
  const limit = parseMoney(definition.limit) * (hasBuckets ? BigInt(buckets) : 1n);
  return {
    window,
    limit: formatMoney(limit),
    charged: formatMoney(charged),
    held: formatMoney(held),
    remaining: formatMoney(limit - charged - held),
    ...resetOf(window),
    setAsides: definition.setAsides.map((_, index) => {
      const part = numbers(index);
      return { charged: formatMoney(part.charged), held: formatMoney(part.held) };
    }),
    ...(hasBuckets && { buckets }),
  };
}
