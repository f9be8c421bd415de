import pg from 'pg';
import { openDatabase } from '../../src/postgres/pool';
import type { Database } from '../../src/postgres/pool';
import type { EventSource } from '../../src/read-models/event-source';
import { READ_MODELS } from '../../src/read-models/read-models';
import { Projection } from '../../src/read-models/runner/projection';
import type { ProjectionRequest } from '../../src/read-models/runner/projection';
import { createTestDatabase } from './database';
import type { TestDatabase } from './database';
import { quiet } from './postgres-server';

/** A database with any number of "processes" that project into it. */
export interface ReadModelBench {
  readonly pool: pg.Pool;
  /** One more process: a connection set and a projection of its own. */
  process(source: EventSource, fields?: Partial<ProjectionRequest>): Projection;
  /** A connected client of its own. */
  client(): Promise<pg.Client>;
  /** Ends a process that hangs: its connections go, with their locks. */
  abandon(projection: Projection): Promise<void>;
  /** Empties all read models. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

export async function openBench(): Promise<ReadModelBench> {
  const test: TestDatabase = await createTestDatabase();
  const databases: Database[] = [];
  const projections: Projection[] = [];
  const databaseOf = new Map<Projection, Database>();
  const another = (): Database => {
    const { url, schema } = test;
    const database = openDatabase({ url, schema, poolSize: 6, applicationName: 'test', log: quiet });
    databases.push(database);
    return database;
  };
  const { pool } = another();
  return {
    pool,
    process: (source, fields = {}) => {
      const database = another();
      const projection = new Projection({
        models: READ_MODELS,
        source,
        connect: () => database.connect(),
        pool: database.pool,
        schema: test.schema,
        log: quiet,
        pollMs: 50,
        ...fields,
      });
      projections.push(projection);
      databaseOf.set(projection, database);
      return projection;
    },
    client: () => another().connect(),
    abandon: async (projection) => {
      projections.splice(projections.indexOf(projection), 1);
      const database = databaseOf.get(projection);
      if (!database) return;
      databases.splice(databases.indexOf(database), 1);
      await database.close();
    },
    clear: async () => {
      await Promise.all(projections.splice(0).map((projection) => projection.stop()));
      await pool.query(`TRUNCATE read_model_checkpoints, attempts, spend_days, budgets, budget_buckets, ledger_settings,
        listed_prices, price_overrides, event_segments`);
    },
    close: async () => {
      await Promise.all(projections.map((projection) => projection.stop()));
      await Promise.all(databases.map((database) => database.close()));
      await test.drop();
    },
  };
}

const DUMPED = [
  ['spend', 'attempts', 'revision'],
  ['spend', 'spend_days', 'day, provider, account, model, workload'],
  ['budgets', 'budgets', 'id'],
  ['budgets', 'budget_buckets', 'budget, generation, window_key, bucket_key, part'],
  ['settings', 'ledger_settings', 'revision'],
  ['settings', 'listed_prices', 'price_id'],
  ['settings', 'price_overrides', 'provider, model'],
  ['event-index', 'event_segments', 'segment'],
] as const;

/** Every served row of every read model but its version: two dumps are equal where the same events were counted. */
export async function dump(pool: pg.Pool, ledger = 'main'): Promise<Record<string, unknown[]>> {
  const tables: Record<string, unknown[]> = {};
  for (const [model, table, order] of DUMPED) {
    const { rows } = await pool.query<{ row: unknown }>(
      `SELECT to_jsonb(t) - 'version' AS row FROM ${table} t WHERE ledger = $1 AND version =
        (SELECT version FROM read_model_checkpoints WHERE ledger = $1 AND model = $2 AND role = 'active') ORDER BY ${order}`,
      [ledger, model],
    );
    tables[table] = rows.map(({ row }) => row);
  }
  return tables;
}

/** Waits for a condition that another part of the system brings about. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 10_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${String(timeoutMs)} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
