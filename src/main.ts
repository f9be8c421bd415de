#!/usr/bin/env node
import { pino } from 'pino';
import type { Logger } from 'pino';
import { bootService } from './boot';
import type { Service } from './boot';
import { ConfigError, loadConfig } from './config/config';
import type { Config } from './config/config';
import { PolicyError } from './policy/apply-policy';

/** The longest a stop takes: longer than requests in flight and the writers' drain together. */
const STOP_WITHIN_MS = 45_000;

function loggerOf({ logLevel, logFormat }: Pick<Config, 'logLevel' | 'logFormat'>): Logger {
  const pretty = {
    target: 'pino-pretty',
    options: { ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss' },
  };
  return pino({ level: logLevel, ...(logFormat === 'pretty' && { transport: pretty }) });
}

function announce(logger: Logger, config: Config, { url, adminKey, dataDir, budgeted }: Service): void {
  logger.info({ url }, `Spend Ledger listens on ${url} (docs at ${url}/docs)`);
  if (dataDir !== undefined) logger.info({ dataDir }, `its PostgreSQL keeps its data in ${dataDir}`);
  if (adminKey?.created !== undefined) {
    // Not through the logger: logs are kept and copied, and this is shown once.
    process.stderr.write(
      `\n  The admin key, shown this once and kept in ${adminKey.file}:\n  ${adminKey.created}\n\n`,
    );
  } else if (adminKey?.kept) {
    logger.info(`the admin key is the one in ${adminKey.file}`);
  } else if (adminKey) {
    logger.warn(
      `the admin key was made at an earlier start and is not in ${adminKey.file}; for a new one delete ` +
        `the row of "admin" from ${config.databaseSchema}.api_keys and start again`,
    );
  }
  if (config.auth === 'off') logger.warn('AUTH=off: everybody on this machine may do everything');
  if (!budgeted) logger.warn('no budget is defined: nothing will be refused');
}

async function main(): Promise<void> {
  const config = loadConfig(process.env, process.stdout.isTTY);
  const logger = loggerOf(config);
  process.on('uncaughtException', (error) => {
    logger.fatal({ err: error }, 'an error nobody caught ends the service');
    process.exit(1);
  });
  const booting = bootService(config, logger);
  stopOnSignals(logger, booting);
  const service = await booting;
  announce(logger, config, service);
  process.send?.({ url: service.url });
}

/** A signal that comes during the start is obeyed after it, so that what was started by then is ended too. */
function stopOnSignals(logger: Logger, booting: Promise<Service>): void {
  let stopping = false;
  const stop = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(1);
    stopping = true;
    logger.info(`${signal}: finishing what was accepted`);
    setTimeout(() => {
      logger.error(`not finished within ${STOP_WITHIN_MS / 1_000} s`);
      process.exit(1);
    }, STOP_WITHIN_MS).unref();
    // A start that fails tells of itself.
    void booting
      .then((service) => service.stop())
      .then(() => {
        logger.info('stopped');
        process.exit(0);
      })
      .catch(() => undefined);
  };
  process.on('SIGTERM', stop).on('SIGINT', stop);
}

/** Why the start failed: in one line where the operator can help it, with the stack where it is our fault. */
function reasonOf(error: unknown): string {
  if (error instanceof ConfigError || error instanceof PolicyError) return error.message;
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return `${error.message}: set PORT (or HOST) to one that is free`;
  return error.stack ?? error.message;
}

main().catch((error: unknown) => {
  process.stderr.write(`${reasonOf(error)}\n`);
  process.exit(1);
});
