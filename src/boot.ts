import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger } from 'pino';
import { AppModule } from './app.module';
import type { Config } from './config/config';
import type { Command } from './domain/commands';
import { formatMoney } from './domain/money';
import { PostgresEventStore } from './event-store/postgres/postgres-event-store';
import { byKeys, byLoopback, ensureAdminKey } from './http/auth/auth';
import type { AdminKey } from './http/auth/auth';
import { KeyStorage } from './http/auth/storage';
import { OpenStreams } from './http/reads/events.controller';
import { createServer } from './http/server';
import { logSource } from './log-source';
import { applyPolicy, mustAccept, readPolicy } from './policy/apply-policy';
import { DatabaseClock } from './postgres/clock';
import { openConfiguredDatabase } from './postgres/configured-database';
import type { ConfiguredDatabase } from './postgres/configured-database';
import type { Log } from './postgres/log';
import { MIN_POOL_SIZE } from './postgres/pool';
import { readStoreTime } from './postgres/store-time';
import { createCatalogue, listPrices } from './prices/catalogue';
import { HistoryReader } from './queries/history/history-reader';
import { ReadServices } from './queries/read-services';
import { LoggedReservationProviders } from './queries/reservation-provider';
import { BudgetQueries } from './read-models/budgets/budget-queries';
import type { EventSource } from './read-models/event-source';
import { READ_MODELS } from './read-models/read-models';
import { Projection } from './read-models/runner/projection';
import { budget, definitionOf } from './schemas/policy';
import { LEDGER_DECIDER } from './writer/ledger-decider';
import { PostgresWriterStorage } from './writer/storage';
import { Writers } from './writer/writers';

export interface Service {
  readonly url: string;
  readonly app: NestFastifyApplication;
  /** With its password: for tools in the same process only. */
  readonly databaseUrl: string;
  readonly adminKey: AdminKey | undefined;
  /** Where the embedded server keeps its data; undefined with a database of the operator's own. */
  readonly dataDir: string | undefined;
  /** Whether any budget exists: without one nothing is refused. */
  readonly budgeted: boolean;
  stop(): Promise<void>;
}

const DRAIN_EVERY_MS = 25;
const DRAIN_WITHIN_MS = 10_000;
const DISCOVER_LEDGERS_MS = 2_000;
/** How long a start waits for the read models before it says what they hold. */
const CATCH_UP_MS = 2_000;

const logTo = (logger: Logger): Log => ({
  info: (message, fields) => {
    logger.info(fields ?? {}, message);
  },
  warn: (message, fields) => {
    logger.warn(fields ?? {}, message);
  },
});

/** What has to be ended, newest first. */
class Teardown {
  private readonly steps: (() => unknown)[] = [];

  constructor(private readonly log: Log) {}

  add(step: () => unknown): void {
    this.steps.unshift(step);
  }

  /** What fails on the way does not keep the rest running. */
  async run(): Promise<void> {
    for (const step of this.steps.splice(0)) {
      try {
        await step();
      } catch (error) {
        this.log.warn('a part of the service could not be ended cleanly', { error: String(error) });
      }
    }
  }
}

/** Composes the whole service and listens. `beforeListen` may add routes of its own (the benchmark's no-op). */
export async function bootService(
  config: Config,
  logger: Logger,
  beforeListen: (app: NestFastifyApplication) => void = () => undefined,
): Promise<Service> {
  const log = logTo(logger);
  const teardown = new Teardown(log);
  try {
    return await compose(config, logger, log, teardown, beforeListen);
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

async function compose(
  config: Config,
  logger: Logger,
  log: Log,
  teardown: Teardown,
  beforeListen: (app: NestFastifyApplication) => void,
): Promise<Service> {
  const opened = await openConfiguredDatabase(withoutHistory(config), log);
  teardown.add(() => opened.stop());
  const ledger = await composeLedger(opened, config, log, teardown);
  const report = (error: unknown): void => {
    logger.error({ err: error }, 'an unexpected error');
  };
  const { pool } = opened.database;
  const keys = new KeyStorage(pool);
  const adminKey = config.auth === 'keys' ? await ensureAdminKey(keys, config.dataDir) : undefined;
  const authenticate = config.auth === 'keys' ? await byKeys(keys) : byLoopback();
  const streams = new OpenStreams();
  const module = AppModule.of({
    gateway: ledger.writers,
    reads: ledger.reads,
    providers: ledger.providers,
    streams,
    report,
  });
  const app = await createServer({ module, authenticate, report });
  beforeListen(app);
  teardown.add(async () => {
    streams.closeAll();
    await drain(app);
  });
  await app.listen(config.port, config.host);
  return {
    url: await app.getUrl(),
    app,
    databaseUrl: opened.url,
    adminKey,
    dataDir: opened.embedded?.dataDir,
    budgeted: (await new BudgetQueries(pool).list('main', ledger.reads.now(), { limit: 1 })).data.length > 0,
    stop: () => teardown.run(),
  };
}

/**
 * Stops listening and lets what was accepted be answered. Connections are kept alive by their clients: each is closed
 * once it falls idle, and all of them when the time is up.
 */
async function drain(app: NestFastifyApplication): Promise<void> {
  const server = app.getHttpServer();
  const idle = setInterval(() => {
    server.closeIdleConnections();
  }, DRAIN_EVERY_MS);
  const late = setTimeout(() => {
    server.closeAllConnections();
  }, DRAIN_WITHIN_MS);
  try {
    await app.close();
  } finally {
    clearInterval(idle);
    clearTimeout(late);
  }
}

/** History's worker has a connection of its own: together they stay within what the operator allows, where that is above the least. */
const withoutHistory = (config: Config): Config => ({
  ...config,
  databasePool: Math.max(MIN_POOL_SIZE, config.databasePool - 1),
});

/** The ledgers' own parts: clock, log, writers, read models, history. */
async function composeLedger(
  { database, url }: Pick<ConfiguredDatabase, 'database' | 'url'>,
  config: Config,
  log: Log,
  teardown: Teardown,
) {
  const { pool, schema } = database;
  const connect = () => database.connect();
  const clock = new DatabaseClock({ readStoreTime: () => readStoreTime(pool) });
  await clock.refresh();
  clock.start();
  teardown.add(() => {
    clock.stop();
  });
  const store = new PostgresEventStore({ pool, connect, schema });
  teardown.add(() => store.close());
  const storage = new PostgresWriterStorage(pool);
  const catalogue = createCatalogue();
  const writers = new Writers({
    store,
    storage,
    clock,
    catalogue,
    decider: LEDGER_DECIDER,
    log,
  });
  const projection = new Projection({
    models: READ_MODELS,
    source: sourceOf(store, writers),
    connect,
    pool,
    schema,
    log,
  });
  teardown.add(() => projection.stop());
  teardown.add(() => writers.close());
  await openLedgers(writers, config);
  const following = await follow(store, writers, projection);
  teardown.add(following.stop);
  await projection.waitFor('main', (await store.head('main'))?.revision ?? -1, CATCH_UP_MS, ['budgets']);
  const history = new HistoryReader({ database: { url, schema }, log });
  teardown.add(() => history.close());
  const { exists } = following;
  const reads: ReadServices = {
    store,
    pool,
    projection,
    history,
    catalogue,
    listPrices,
    now: () => clock.now(),
    exists,
  };
  const recent = (ledger: string, revision: number) => writers.loaded().get(ledger)?.recent.get(revision);
  return { writers, reads, providers: new LoggedReservationProviders(recent, store) };
}

/** What the writer has confirmed just now, and the log behind it. */
const sourceOf = (store: PostgresEventStore, writers: Writers): EventSource => ({
  ...logSource(store),
  recent: (ledger, from, max) => writers.loaded().get(ledger)?.recent.from(from, max),
  onNew: (ledger, callback) =>
    writers.onConfirmed((events) => {
      if (events[0]?.ledger === ledger) callback();
    }),
});

/** `main` is there from the start; the policy and the daily limit are applied before anybody is answered. */
async function openLedgers(writers: Writers, config: Config): Promise<void> {
  const send = (command: Command) => mustAccept(writers, { actor: 'system', ledger: 'main', command });
  await send({ type: 'OpenLedger', settings: {} });
  if (config.dailyLimit !== undefined) {
    const limit = budget.parse({ window: 'day', limit: formatMoney(config.dailyLimit) });
    await send({
      type: 'DefineBudget',
      budget: definitionOf('daily-limit', limit),
      countFrom: limit.countFrom,
    });
  }
  if (config.policyFile !== undefined) await applyPolicy(readPolicy(config.policyFile), writers);
  await writers.openAll();
}

/** Read models follow every ledger, also those that are opened later or by other processes. */
async function follow(store: PostgresEventStore, writers: Writers, projection: Projection) {
  const followed = new Set<string>();
  const begin = (ledger: string): void => {
    followed.add(ledger);
    projection.follow(ledger);
  };
  const discover = async (): Promise<void> => {
    for (const ledger of await writers.ledgers()) if (!followed.has(ledger)) begin(ledger);
  };
  await discover();
  const timer = setInterval(() => void discover().catch(() => undefined), DISCOVER_LEDGERS_MS).unref();
  return {
    exists: async (ledger: string): Promise<boolean> => {
      if (followed.has(ledger)) return true;
      if ((await store.head(ledger)) === undefined) return false;
      begin(ledger);
      return true;
    },
    stop: () => {
      clearInterval(timer);
    },
  };
}
