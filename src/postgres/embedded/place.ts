import { createHash } from 'node:crypto';
import { mkdir, readFile, realpath, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Log } from '../log';
import { isCluster } from './cluster';
import { canPassTo, makePassable, serverAccount, type OsAccount } from './os-account';

/** Where a cluster lies, and who its server runs as. */
export interface Place {
  readonly home: string;
  /** Undefined: as this process does. */
  readonly account: OsAccount | undefined;
  /** Notes in DATA_DIR where the cluster lies when that is elsewhere; call it when the cluster stands. */
  remember(): Promise<void>;
}

/** Where root keeps what the server's OS user must reach, when DATA_DIR is out of its reach. */
export const SHELTER = '/var/lib/spend-ledger';

const LOCATION = 'postgres.location';
const nothingToRemember = async (): Promise<void> => Promise.resolve();

/** Makes DATA_DIR: for its owner alone, except that PostgreSQL's OS user may pass through one that root makes. */
export async function makeDataDir(dataDir: string): Promise<string> {
  if (process.getuid?.() === 0) await makePassable(path.resolve(dataDir), 0o711);
  else await mkdir(dataDir, { recursive: true, mode: 0o700 });
  return realpath(dataDir);
}

/**
 * The cluster of a DATA_DIR stays where it was once made. A new one lies in DATA_DIR, or in the shelter where the server's
 * OS user cannot get there (a checkout under a home of mode 0700).
 */
export async function placeCluster(dataDir: string, shelters: readonly string[], log: Log): Promise<Place> {
  const real = await makeDataDir(dataDir);
  const home = (await rememberedHome(real)) ?? path.join(real, 'postgres');
  const owner = await ownerOf(home);
  if (owner !== undefined) return { home, account: owner.account, remember: nothingToRemember };
  const account = await serverAccount(log);
  if (account === undefined || (await canPassTo(home, account))) {
    return { home, account, remember: nothingToRemember };
  }
  return shelteredPlace(real, account, shelters, log);
}

async function rememberedHome(dataDir: string): Promise<string | undefined> {
  const file = path.join(dataDir, LOCATION);
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const home = text.trim();
  if (await isCluster(home)) return home;
  throw new Error(
    `${file} says that the data of PostgreSQL lies in ${home}, but it is not there. ` +
      `Bring it back, or remove that file to start with an empty ledger.`,
  );
}

/** The server runs as the owner of its files, whoever starts it: undefined where there is no cluster yet. */
async function ownerOf(home: string): Promise<{ account: OsAccount | undefined } | undefined> {
  const files = await stat(home).catch(() => undefined);
  const self = process.getuid?.();
  if (files === undefined) return undefined;
  if (self === files.uid) return (await isCluster(home)) ? { account: undefined } : undefined;
  if (self !== 0) {
    throw new Error(
      `${home} belongs to another OS user (uid ${String(files.uid)}): start as that user or as root, or set another DATA_DIR`,
    );
  }
  if (!(await isCluster(home))) return undefined;
  return { account: { name: `uid ${String(files.uid)}`, uid: files.uid, gid: files.gid } };
}

async function shelteredPlace(
  dataDir: string,
  account: OsAccount,
  shelters: readonly string[],
  log: Log,
): Promise<Place> {
  const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  for (const shelter of shelters) {
    const home = path.join(shelter, name, 'postgres');
    try {
      await makePassable(path.dirname(home));
      if (!(await canPassTo(path.join(await realpath(path.dirname(home)), 'x'), account))) continue;
    } catch {
      continue; // not writable: the next one
    }
    log.info(`PostgreSQL keeps its data in ${home}: its OS user "${account.name}" cannot reach ${dataDir}`);
    const remember = (): Promise<void> =>
      writeFile(path.join(dataDir, LOCATION), `${home}\n`, { mode: 0o600 });
    return { home, account, remember };
  }
  throw new Error(
    `the OS user "${account.name}", which PostgreSQL runs as because it refuses to run as root, cannot reach ${dataDir}, ` +
      `nor ${shelters.join(' or ')}. Set DATA_DIR to a folder that it can reach, start as another user than root, or set DATABASE_URL.`,
  );
}
