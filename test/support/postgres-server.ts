import { spawn, type ChildProcess } from 'node:child_process';
import { chmod, chown, mkdtemp, readdir, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { packagedBinaries, usableBinaries } from '../../src/postgres/embedded/binaries';
import { identity, isAlive, openCluster } from '../../src/postgres/embedded/cluster';
import { serverAccount } from '../../src/postgres/embedded/os-account';
import { freePort, runningPostmaster } from '../../src/postgres/embedded/server';

export const quiet = { info: () => undefined, warn: () => undefined };

export interface TestServer {
  /** Of the maintenance database `postgres`, as superuser. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Runs the server and waits for its standard input to end: then the server is ended and its folder removed. The
 * pipe ends with the test run however that ends, so not even a kill -9 leaves a server behind. (A copy of the
 * binaries is root's; `stop` removes it, or the next run.)
 */
const GUARDED = `
"$@" </dev/null & server=$!
read -r _
kill -QUIT $server 2>/dev/null
wait $server
rm -rf "$FOLDER" 2>/dev/null
`;

const PREFIX = 'spend-ledger-test-';
const START_TIMEOUT_MS = 20_000;

/** One throw-away PostgreSQL, quick instead of durable, in a folder of its own. */
export async function startTestServer(): Promise<TestServer> {
  const account = await serverAccount(quiet);
  const folders = await realpath(tmpdir());
  await removeAbandoned(folders);
  const folder = await mkdtemp(path.join(folders, `${PREFIX}${String(process.pid)}-`));
  await chmod(folder, 0o755);
  const binaries = await usableBinaries({
    native: packagedBinaries(),
    account,
    cacheRoots: [folder],
    log: quiet,
  });
  const cluster = await openCluster({
    home: path.join(folder, 'postgres'),
    binaries,
    account,
    durable: false,
  });
  if (account !== undefined) await chown(folder, account.uid, account.gid);
  const port = await freePort();
  const settings = ['fsync=off', 'full_page_writes=off', 'synchronous_commit=off', 'max_connections=300'];
  settings.push(
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'timezone=UTC',
    'log_min_messages=panic',
  );
  const guard = spawn(
    '/bin/sh',
    [
      '-c',
      GUARDED,
      'guard',
      binaries.postgres,
      '-D',
      cluster.data,
      '-p',
      String(port),
      ...settings.flatMap((each) => ['-c', each]),
    ],
    {
      ...identity(account),
      cwd: '/',
      env: { PATH: process.env['PATH'], LC_ALL: 'C', FOLDER: folder },
      detached: true,
      stdio: ['pipe', 'ignore', 'inherit'],
    },
  );
  await untilReady(cluster.data, guard);
  guard.unref();
  return {
    url: `postgres://postgres:${cluster.password}@127.0.0.1:${String(port)}/postgres`,
    stop: async () => {
      await ended(guard);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** What a run left that was killed before its guard stood. */
async function removeAbandoned(folders: string): Promise<void> {
  for (const name of (await readdir(folders)).filter((each) => each.startsWith(PREFIX))) {
    const [pid] = name.slice(PREFIX.length).split('-');
    const folder = path.join(folders, name);
    if (isAlive(Number(pid)) || (await runningPostmaster(path.join(folder, 'postgres', 'data')))) continue;
    await rm(folder, { recursive: true, force: true }).catch(() => undefined); // another user's is theirs to remove
  }
}

async function untilReady(data: string, guard: ChildProcess): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while ((await runningPostmaster(data))?.status !== 'ready') {
    if (guard.exitCode !== null || performance.now() > deadline) {
      await ended(guard);
      throw new Error('the PostgreSQL of the tests did not start');
    }
    await delay(10);
  }
}

async function ended(guard: ChildProcess): Promise<void> {
  if (guard.exitCode !== null || guard.signalCode !== null) return;
  const end = new Promise((resolve) => guard.once('exit', resolve));
  guard.ref();
  guard.stdin?.end();
  await end;
}
