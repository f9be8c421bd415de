import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import type { Log } from './log';

/** `migrations/` lies beside both `src/` and `dist/`. */
export const MIGRATIONS_FOLDER = path.join(__dirname, '..', '..', 'migrations');

export interface MigrationRequest {
  readonly url: string;
  /** A validated identifier; made where it is missing. */
  readonly schema: string;
  readonly log: Log;
  readonly folder?: string;
}

/** Longer than any migration of ours takes: the second of two starters waits for the first. */
const LOCK_TIMEOUT_MS = 300_000;
const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Brings the schema to this version's shape: the SQL files of `migrations/` that were not applied yet, in one
 * transaction, with their record inside of the schema. Starters of all processes wait for each other. Throws where a file was
 * changed after it had been applied, or the database has been migrated by a newer version.
 */
export async function migrate({
  url,
  schema,
  log,
  folder = MIGRATIONS_FOLDER,
}: MigrationRequest): Promise<void> {
  const files = await readMigrations(folder);
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'spend-ledger migrations',
  });
  client.on('error', () => undefined); // a lost connection also rejects the query it interrupts
  await client.connect();
  try {
    await client.query(`SET lock_timeout = ${String(LOCK_TIMEOUT_MS)}`);
    await client.query('SET statement_timeout = 0');
    await client.query('SELECT pg_advisory_lock($1::bigint)', [lockOf(schema)]);
    await compareWithApplied(client, schema, files);
    await applyMissing(client, schema, folder, log);
    await recordChecksums(client, schema, files);
  } finally {
    await client.end();
  }
}

async function applyMissing(client: pg.Client, schema: string, folder: string, log: Log): Promise<void> {
  // An owner of the schema alone may not create schemas, not even with IF NOT EXISTS.
  const found = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]);
  const { runner } = await import('node-pg-migrate');
  const applied = await runner({
    dbClient: client,
    schema,
    createSchema: found.rowCount === 0,
    migrationsSchema: schema,
    migrationsTable: 'migrations',
    dir: folder,
    ignorePattern: '(?!.*\\.sql$).*',
    direction: 'up',
    singleTransaction: true,
    noLock: true, // ours is held already: theirs would also wait for other applications in this database
    logger: {
      debug: ignore,
      info: ignore,
      warn: (message) => {
        log.warn(message);
      },
      error: ignore,
    },
  });
  if (applied.length > 0)
    log.info('migrated the database', { schema, migrations: applied.map(({ name }) => name) });
}

function ignore(): void {
  // node-pg-migrate prints every statement; what matters is thrown
}

/** One lock a schema, from a namespace of our own. */
function lockOf(schema: string): bigint {
  return createHash('sha256').update(`spend-ledger migrations ${schema}`).digest().readBigInt64BE();
}

/** Name without ending → SHA-256 of the text, whatever line endings a checkout gave it. */
async function readMigrations(folder: string): Promise<Map<string, string>> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql'));
  const sums = new Map<string, string>();
  for (const name of names) {
    const text = (await readFile(path.join(folder, name), 'utf8')).replaceAll('\r\n', '\n');
    sums.set(path.basename(name, '.sql'), createHash('sha256').update(text).digest('hex'));
  }
  return sums;
}

/** node-pg-migrate knows names only: a file edited after it ran would go unnoticed. */
async function compareWithApplied(
  client: pg.Client,
  schema: string,
  files: Map<string, string>,
): Promise<void> {
  const table = `"${schema}".migrations`;
  const known = await client.query<{ yes: boolean }>('SELECT to_regclass($1) IS NOT NULL AS yes', [table]);
  if (known.rows[0]?.yes !== true) return;
  await client.query(`ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS sha256 text`);
  const { rows } = await client.query<{ name: string; sha256: string | null }>(
    `SELECT name, sha256 FROM ${table}`,
  );
  for (const { name, sha256 } of rows) {
    const file = files.get(name);
    if (file === undefined) {
      throw new Error(`schema "${schema}" was migrated by a newer version (${name}): start that one`);
    }
    if (sha256 !== null && sha256 !== file) {
      throw new Error(`migration ${name} was changed after it had been applied to schema "${schema}"`);
    }
  }
}

async function recordChecksums(client: pg.Client, schema: string, files: Map<string, string>): Promise<void> {
  const table = `"${schema}".migrations`;
  await client.query(`ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS sha256 text`);
  await client.query(
    `UPDATE ${table} SET sha256 = file.sha256 FROM unnest($1::text[], $2::text[]) AS file (name, sha256)
      WHERE migrations.name = file.name AND migrations.sha256 IS NULL`,
    [[...files.keys()], [...files.values()]],
  );
}
