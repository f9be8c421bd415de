import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger } from 'pino';
import { AppModule } from './app.module';
import type { Config } from './config/config';
import { DEFAULT_MAX_BUCKETS, DEFAULT_THRESHOLDS } from './domain/budget';
import type { BudgetDefinition } from './domain/budget';
import type { Command } from './domain/commands';
import { formatMoney } from './domain/money';
import { STATE_SCHEMA_VERSION } from './domain/snapshot';
import { decodeEvent } from './domain/upcast';
import { PostgresEventStore } from './event-store/postgres/postgres-event-store';
import { byKeys, byLoopback, ensureAdminKey } from './http/auth/auth';
import { KeyStorage } from './http/auth/storage';
import { OpenStreams } from './http/reads/events.controller';
import { createServer } from './http/server';
import { applyPolicy, readPolicy } from './policy/apply-policy';
import { DatabaseClock } from './postgres/clock';
import { openConfiguredDatabase } from './postgres/configured-database';
import type { Log } from './postgres/log';
import { readStoreTime } from './postgres/store-time';
import { createCatalogue, listPrices } from './prices/catalogue';
import { HistoryReader } from './queries/history/history-reader';
import { ReadServices } from './queries/read-services';
import type { EventSource } from './read-models/event-source';
import { READ_MODELS } from './read-models/read-models';
import { Projection } from './read-models/runner/projection';
import { readTotals } from './read-models/totals';
import { LEDGER_DECIDER } from './writer/ledger-decider';
import { PostgresWriterStorage } from './writer/storage';
import { Writers } from './writer/writers';

export interface Service {
  readonly url: string;
  readonly app: NestFastifyApplication;
  /** Where the admin key lies, and the key itself where this start made it. */
  readonly adminKey: { readonly file: string; readonly created: string | undefined } | undefined;
  /** Where the embedded server keeps its data; undefined with a database of the operator's own. */
  readonly dataDir: string | undefined;
  /** Whether any budget exists: without one nothing is refused. */
  readonly budgeted: boolean;
  stop(): Promise<void>;
}

const unzip = promisify(gunzip);
const DISCOVER_LEDGERS_MS = 2_000;

const logTo = (logger: Logger): Log => ({
  info: (message, fields) => {
    logger.info(fields ?? {}, message);
  },
  warn: (message, fields) => {
    logger.warn(fields ?? {}, message);
  },
});

/** Composes the whole service and listens. `beforeListen` may add routes of its own (the benchmark's no-op). */
export async function bootService(
  config: Config,
  logger: Logger,
  beforeListen: (app: NestFastifyApplication) => void = () => undefined,
): Promise<Service> {
  const log = logTo(logger);
  const opened = await openConfiguredDatabase(config, log);
  const { database } = opened;
  const undo: (() => Promise<unknown> | void)[] = [() => opened.stop()];
  try {
    const { pool } = database;
    const clock = new DatabaseClock({ readStoreTime: () => readStoreTime(pool) });
    await clock.refresh();
    clock.start();
    undo.unshift(() => {
      clock.stop();
    });
    const store = new PostgresEventStore({
      pool,
      connect: () => database.connect(),
      schema: database.schema,
    });
    undo.unshift(() => store.close());
    const storage = new PostgresWriterStorage(pool);
    const writers = new Writers({
      store,
      storage,
      clock,
      catalogue: createCatalogue(),
      decider: LEDGER_DECIDER,
      log,
    });
    const projection = new Projection({
      models: READ_MODELS,
      source: sourceOf(store, writers),
      connect: () => database.connect(),
      pool,
      schema: database.schema,
      log,
    });
    undo.unshift(() => projection.stop());
    undo.unshift(() => writers.close());
    await openLedgers(writers, config);
    const following = await follow(writers, projection);
    undo.unshift(following.stop);
    const history = new HistoryReader({
      store,
      snapshot: snapshotsOf(storage),
      totals: (ledger) => readTotals(pool, ledger),
    });
    undo.unshift(() => history.close());
    const streams = new OpenStreams();
    const reads: ReadServices = {
      store,
      pool,
      projection,
      history,
      listPrices,
      now: () => clock.now(),
      exists: following.exists,
    };
    const report = (error: unknown): void => {
      logger.error({ err: error }, 'an unexpected error');
    };
    const keys = new KeyStorage(pool);
    const adminKey = config.auth === 'keys' ? await ensureAdminKey(keys, config.dataDir) : undefined;
    const authenticate = config.auth === 'keys' ? await byKeys(keys) : byLoopback();
    const app = await createServer({
      module: AppModule.of({ gateway: writers, reads, streams, report }),
      authenticate,
      report,
    });
    beforeListen(app);
    await app.listen(config.port, config.host);
    undo.unshift(async () => {
      streams.closeAll();
      await app.close();
    });
    const { rows } = await pool.query<{ n: string }>(
      "SELECT count(*) AS n FROM events WHERE type = 'BudgetDefined' AND ledger = 'main' AND revision < 10000",
    );
    return {
      url: await app.getUrl(),
      app,
      adminKey,
      dataDir: opened.embedded?.dataDir,
      budgeted: Number(rows[0]?.n) > 0,
      stop: () => unwind(undo, log),
    };
  } catch (error) {
    await unwind(undo, log);
    throw error;
  }
}

/** Everything that was begun is ended, newest first; what fails on the way does not keep the rest running. */
async function unwind(undo: readonly (() => Promise<unknown> | void)[], log: Log): Promise<void> {
  for (const step of undo) {
    try {
      await step();
    } catch (error) {
      log.warn('a part of the service could not be ended cleanly', { error: String(error) });
    }
  }
}

/** The log as read models see it: what the writer has confirmed just now, and the log behind it. */
function sourceOf(store: PostgresEventStore, writers: Writers): EventSource {
  return {
    recent: (ledger, from, max) => writers.loaded().get(ledger)?.recent.from(from, max),
    read: async (ledger, from, limit) =>
      (await store.read(ledger, { from, limit })).map(({ bytes }) => decodeEvent(bytes)),
    head: async (ledger) => (await store.head(ledger))?.revision ?? -1,
    onNew: (ledger, callback) => {
      const off = writers.onConfirmed((events) => {
        if (events[0]?.ledger === ledger) callback();
      });
      return () => {
        off();
      };
    },
  };
}

/** `main` is there from the start; the policy and the daily limit are applied before anybody is answered. */
async function openLedgers(writers: Writers, config: Config): Promise<void> {
  const send = async (command: Command): Promise<void> => {
    const id = randomUUID();
    const outcome = await writers.submit('main', command, {
      actor: 'system',
      correlationId: id,
      causationId: id,
    });
    if (outcome.kind === 'rejected') throw new Error(outcome.rejection.detail);
  };
  await send({ type: 'OpenLedger', settings: {} });
  if (config.dailyLimit !== undefined) {
    await send({
      type: 'DefineBudget',
      budget: dailyLimit(formatMoney(config.dailyLimit)),
      countFrom: 'window',
    });
  }
  if (config.policyFile !== undefined) await applyPolicy(readPolicy(config.policyFile), writers);
  await writers.openAll();
}

const dailyLimit = (limit: string): BudgetDefinition => ({
  id: 'daily-limit',
  match: {},
  each: [],
  window: 'day',
  limit,
  setAsides: [],
  mode: 'enforce',
  thresholds: DEFAULT_THRESHOLDS,
  maxBuckets: DEFAULT_MAX_BUCKETS,
});

/** Read models follow every ledger, also those that are opened later or by other processes. */
async function follow(writers: Writers, projection: Projection) {
  const followed = new Set<string>();
  const discover = async (): Promise<void> => {
    for (const ledger of await writers.ledgers()) {
      if (followed.has(ledger)) continue;
      followed.add(ledger);
      projection.follow(ledger);
    }
  };
  await discover();
  const timer = setInterval(() => void discover().catch(() => undefined), DISCOVER_LEDGERS_MS).unref();
  return {
    exists: async (ledger: string): Promise<boolean> => {
      if (!followed.has(ledger)) await discover();
      return followed.has(ledger);
    },
    stop: () => {
      clearInterval(timer);
    },
  };
}

const snapshotsOf =
  (storage: PostgresWriterStorage) => async (ledger: string, until: { revision?: number; atMs?: number }) => {
    const snapshot = await storage.newestSnapshot(ledger, STATE_SCHEMA_VERSION, until);
    return snapshot && { revision: snapshot.revision, text: (await unzip(snapshot.body)).toString('utf8') };
  };
