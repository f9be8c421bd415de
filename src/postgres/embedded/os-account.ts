import { execFile } from 'node:child_process';
import { chmod, mkdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Log } from '../log';

const run = promisify(execFile);

/** The OS user that PostgreSQL's processes run as. */
export interface OsAccount {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

const SERVER_ACCOUNT = 'postgres';

/**
 * PostgreSQL refuses to run as root. For root this is the OS user `postgres`, created where it is missing; for
 * everybody else undefined: the server runs as they are. Throws with what to do where the user cannot be made.
 */
export async function serverAccount(log: Log): Promise<OsAccount | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const known = await lookUp(SERVER_ACCOUNT);
  if (known !== undefined) return known;
  try {
    await run('useradd', [
      '--system',
      '--user-group',
      '--no-create-home',
      '--shell',
      '/bin/false',
      SERVER_ACCOUNT,
    ]);
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const cause = missing ? 'there is no useradd to make it with' : `useradd failed: ${String(error)}`;
    throw new Error(
      `PostgreSQL refuses to run as root, the OS user "${SERVER_ACCOUNT}" does not exist, and ${cause}. ` +
        `Create that user, start as another user than root, or set DATABASE_URL.`,
      { cause: error },
    );
  }
  const created = await lookUp(SERVER_ACCOUNT);
  if (created === undefined) throw new Error(`useradd made no OS user "${SERVER_ACCOUNT}"`);
  log.info(`created the OS user "${SERVER_ACCOUNT}" for the embedded PostgreSQL`);
  return created;
}

async function lookUp(name: string): Promise<OsAccount | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])]);
    return { name, uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch {
    return undefined;
  }
}

const READ = 4;
const TRAVERSE = 1;

/**
 * Whether the account may list and enter a folder (or read and execute a file), and may pass every folder above.
 * `realPath` has no symbolic links. The server has no supplementary groups, so mode bits tell it all.
 */
export async function canReach(realPath: string, account: OsAccount): Promise<boolean> {
  if (!(await allows(realPath, account, READ | TRAVERSE))) return false;
  return canPassTo(realPath, account);
}

/** Whether the account may pass every folder above `realPath`, which itself need not exist. */
export async function canPassTo(realPath: string, account: OsAccount): Promise<boolean> {
  let folder = path.dirname(realPath);
  for (;;) {
    if (!(await allows(folder, account, TRAVERSE))) return false;
    const above = path.dirname(folder);
    if (above === folder) return true;
    folder = above;
  }
}

async function allows(file: string, account: OsAccount, wanted: number): Promise<boolean> {
  const { mode, uid, gid } = await stat(file);
  const shift = uid === account.uid ? 6 : gid === account.gid ? 3 : 0;
  return ((mode >> shift) & wanted) === wanted;
}

/** Makes a folder, and those above it that are missing, so that everybody may pass whatever the umask is. */
export async function makePassable(folder: string, mode = 0o755): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  await chmod(folder, mode);
  for (let made = folder; made !== first;) {
    made = path.dirname(made);
    await chmod(made, 0o755);
  }
}
