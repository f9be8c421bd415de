import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chown, mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { PostgresBinaries } from './binaries';
import type { OsAccount } from './os-account';

/** A cluster's home: PostgreSQL's data folder with the password of its one database user beside it. */
export interface Cluster {
  readonly home: string;
  readonly data: string;
  readonly password: string;
}

export interface ClusterRequest {
  readonly home: string;
  readonly binaries: PostgresBinaries;
  readonly account: OsAccount | undefined;
  /** False for a throw-away cluster: nothing waits for the disk. */
  readonly durable: boolean;
}

/** Folders that this process is making right now. */
const underConstruction = new Set<string>();

const STALE_AFTER_MS = 3_600_000;
const INITDB_TIMEOUT_MS = 120_000;

/**
 * Opens the cluster, made first where there is none. It is made under another name and renamed when it is complete, so
 * that a start killed half-way leaves nothing that the next one takes for a cluster. Of two that start at once, one's is kept.
 */
export async function openCluster(request: ClusterRequest): Promise<Cluster> {
  await removeAbandoned(request.home);
  if (!(await isCluster(request.home))) await createCluster(request);
  return readCluster(request.home);
}

async function readCluster(home: string): Promise<Cluster> {
  const password = await readFile(path.join(home, 'password'), 'utf8');
  return { home, data: path.join(home, 'data'), password: password.trim() };
}

/** Whether a complete cluster lies here. */
export async function isCluster(home: string): Promise<boolean> {
  return stat(path.join(home, 'data', 'PG_VERSION')).then(
    () => true,
    () => false,
  );
}

async function createCluster({ home, binaries, account, durable }: ClusterRequest): Promise<void> {
  const building = `${home}.new-${String(process.pid)}-${randomBytes(4).toString('hex')}`;
  const passwordFile = path.join(building, 'password');
  underConstruction.add(building);
  try {
    await mkdir(building, { mode: 0o700 });
    await writeFile(passwordFile, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
    if (account !== undefined) {
      await chown(passwordFile, account.uid, account.gid);
      await chown(building, account.uid, account.gid);
    }
    await initialise(binaries.initdb, account, [
      `--pgdata=${path.join(building, 'data')}`,
      `--pwfile=${passwordFile}`,
      '--username=postgres',
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      ...(durable ? [] : ['--no-sync']),
    ]);
    await rename(building, home).catch(async (error: unknown) => {
      if (!(await isCluster(home))) throw error; // otherwise another start was quicker: its cluster is the one
    });
  } finally {
    await rm(building, { recursive: true, force: true });
    underConstruction.delete(building);
  }
}

async function initialise(initdb: string, account: OsAccount | undefined, args: string[]): Promise<void> {
  const child = spawn(initdb, args, {
    ...identity(account),
    cwd: '/',
    env: serverEnvironment(),
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: INITDB_TIMEOUT_MS,
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-4_000)));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject).on('close', resolve);
  });
  if (code !== 0) throw new Error(`initdb failed (exit ${String(code)}): ${errors.trim()}`);
}

/** Who a program of the server runs as, for `spawn`. */
export function identity(account: OsAccount | undefined): { uid?: number; gid?: number } {
  return account === undefined ? {} : { uid: account.uid, gid: account.gid };
}

/** English messages, and nothing of the caller's own PG* settings or secrets. */
export function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' };
}

/** Removes what starts left that were killed while they made a cluster. */
async function removeAbandoned(home: string): Promise<void> {
  const prefix = `${path.basename(home)}.new-`;
  const names = await readdir(path.dirname(home)).catch(() => []);
  for (const name of names.filter((each) => each.startsWith(prefix))) {
    const folder = path.join(path.dirname(home), name);
    if (underConstruction.has(folder)) continue;
    const pid = Number(name.slice(prefix.length).split('-')[0]);
    if (pid === process.pid || !isAlive(pid) || (await isOld(folder))) {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

/** Whether a process has this id, whoever it belongs to. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function isOld(folder: string): Promise<boolean> {
  return stat(folder).then(
    ({ mtimeMs }) => Date.now() - mtimeMs > STALE_AFTER_MS,
    () => false,
  );
}
