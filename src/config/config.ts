import { isIPv6 } from 'node:net';
import path from 'node:path';
import { z } from 'zod';
import { isMoney, MAX_AMOUNT, parseMoney, type Money } from '../domain/money';
import { MIN_POOL_SIZE } from '../postgres/pool';

/** What the environment asks for (DESIGN 10), checked. */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** Undefined: an embedded PostgreSQL in `dataDir`. */
  readonly databaseUrl: string | undefined;
  readonly databaseSchema: string;
  /** Most database connections of this process. */
  readonly databasePool: number;
  /** One budget for everything, a day. */
  readonly dailyLimit: Money | undefined;
  /** Absolute. */
  readonly dataDir: string;
  /** Absolute. */
  readonly policyFile: string | undefined;
  readonly auth: 'keys' | 'off';
  /** Where other processes reach this one; undefined: see `peerUrlOf`. Never ends in a slash. */
  readonly peerUrl: string | undefined;
  readonly logLevel: LogLevel;
  readonly logFormat: 'pretty' | 'json';
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Every fault of the environment at once, each with its variable's name; values that may be secret are not in it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(readonly faults: readonly string[]) {
    super(`the configuration is wrong:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
  }
}

const port = z
  .string()
  .regex(/^\d{1,5}$/, 'must be a port number')
  .transform(Number)
  .refine((value) => value <= 65_535, 'must be a port number, at most 65535');

const pool = z
  .string()
  .regex(/^\d{1,4}$/, 'must be a whole number')
  .transform(Number)
  .refine((value) => value >= MIN_POOL_SIZE, `must be at least ${String(MIN_POOL_SIZE)}`);

/** PostgreSQL cuts longer names silently. */
const schemaName = z
  .string()
  .regex(
    /^[a-z_][a-z0-9_]{0,62}$/,
    'must be lower-case letters, digits and _, at most 63, and start with a letter',
  )
  .refine(
    (name) => !name.startsWith('pg_') && name !== 'information_schema',
    'must not be one of the schemas that belong to PostgreSQL',
  )
  .refine((name) => name !== 'public', 'must not be public: the schema goes as a whole when the ledger goes');

const dailyLimit = z
  .string()
  .refine(isMoney, 'must be an amount in USD, such as 5.00')
  .transform((text, context): Money => {
    if (!isMoney(text)) return z.NEVER;
    const amount = parseMoney(text);
    if (amount < 0n) context.addIssue({ code: 'custom', message: 'must not be negative' });
    if (amount > MAX_AMOUNT) context.addIssue({ code: 'custom', message: 'must be at most 1000000' });
    return amount;
  });

const environment = z.object({
  HOST: z
    .string()
    .regex(/^[A-Za-z0-9._:%-]+$/, 'must be a host name or an address')
    .default('127.0.0.1'),
  PORT: port.default(8080),
  DATABASE_URL: z
    .string()
    .refine(
      (url) => hasProtocol(url, ['postgres:', 'postgresql:']),
      'must be a URL such as postgres://user@host/database',
    )
    .optional(),
  EVENT_STORE_URL: z
    .string()
    .refine(() => false, 'is not supported by this version: the log is kept in PostgreSQL; leave it unset')
    .optional(),
  DATABASE_SCHEMA: schemaName.default('spend_ledger'),
  DATABASE_POOL: pool.default(8),
  DAILY_LIMIT: dailyLimit.optional(),
  DATA_DIR: z.string().default('.data'),
  POLICY_FILE: z.string().optional(),
  AUTH: z.enum(['keys', 'off'], 'must be keys or off').default('keys'),
  PEER_URL: z
    .string()
    .refine((url) => hasProtocol(url, ['http:', 'https:']), 'must be a URL such as http://10.0.0.7:8080')
    .optional(),
  LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
  LOG_FORMAT: z.enum(['pretty', 'json'], 'must be pretty or json').optional(),
});

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the configuration from environment variables; an empty one counts as unset. Throws ConfigError with every fault.
 * `isTerminal` and `workingDirectory` are what defaults depend on.
 */
export function loadConfig(
  env: Environment,
  isTerminal: boolean = process.stdout.isTTY,
  workingDirectory: string = process.cwd(),
): Config {
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
  const parsed = environment.safeParse(given);
  const faults = parsed.success
    ? []
    : parsed.error.issues.map(({ path: at, message }) => `${at.join('.')} ${message}`);
  const host = env['HOST'] ?? '127.0.0.1';
  if (env['AUTH'] === 'off' && host !== '' && !isLoopback(host)) {
    faults.push('AUTH may be off only where HOST is a loopback address, such as 127.0.0.1');
  }
  if (!parsed.success || faults.length > 0) throw new ConfigError(faults);
  const { data } = parsed;
  return {
    host: data.HOST,
    port: data.PORT,
    databaseUrl: data.DATABASE_URL,
    databaseSchema: data.DATABASE_SCHEMA,
    databasePool: data.DATABASE_POOL,
    dailyLimit: data.DAILY_LIMIT,
    dataDir: path.resolve(workingDirectory, data.DATA_DIR),
    policyFile: data.POLICY_FILE === undefined ? undefined : path.resolve(workingDirectory, data.POLICY_FILE),
    auth: data.AUTH,
    peerUrl: data.PEER_URL?.replace(/\/+$/, ''),
    logLevel: data.LOG_LEVEL,
    logFormat: data.LOG_FORMAT ?? (isTerminal ? 'pretty' : 'json'),
  };
}

function hasProtocol(text: string, protocols: readonly string[]): boolean {
  return URL.canParse(text) && protocols.includes(new URL(text).protocol);
}

/** Where other processes reach this one, given the port it really listens on (PORT may be 0). */
export function peerUrlOf(config: Pick<Config, 'host' | 'peerUrl'>, listeningPort: number): string {
  const { host, peerUrl } = config;
  return peerUrl ?? `http://${isIPv6(host) ? `[${host}]` : host}:${String(listeningPort)}`;
}

/** `localhost`, 127.0.0.0/8 and ::1: nobody but this machine reaches them. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
