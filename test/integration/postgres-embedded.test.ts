import { execFile, spawn, type ChildProcess } from 'node:child_process';
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { packagedBinaries } from '../../src/postgres/embedded/binaries';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../src/postgres/embedded/embedded-postgres';
import { runningPostmaster, stopServer } from '../../src/postgres/embedded/server';
import { compileSource } from '../support/compiled-source';
import { RecordedLog } from '../support/recorded-log';
import { until } from '../support/until';

const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? it : it.skip;

/** A cluster that was once started and stopped: to copy one is quicker than to make one. */
let prepared: string;
let folder: string;
let dataDir: string;
let shelter: string;
let log: RecordedLog;
const started: EmbeddedPostgres[] = [];
const children: ChildProcess[] = [];

beforeAll(async () => {
  prepared = await newFolder();
  const server = await startEmbeddedPostgres({
    dataDir: path.join(prepared, 'data'),
    log: new RecordedLog(),
  });
  await server.stop();
});

afterAll(async () => {
  await rm(prepared, { recursive: true, force: true });
});

async function newFolder(): Promise<string> {
  const made = await mkdtemp(path.join(await realpath(tmpdir()), 'spend-ledger-embedded-'));
  await chmod(made, 0o755);
  return made;
}

async function havingStartedBefore(): Promise<void> {
  await promisify(execFile)('cp', ['-a', path.join(prepared, 'data'), dataDir]);
}

beforeEach(async () => {
  folder = await newFolder();
  dataDir = path.join(folder, 'data');
  shelter = path.join(folder, 'shelter');
  log = new RecordedLog();
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const server of started.splice(0)) await server.stop();
  for (const home of [path.join(dataDir, 'postgres'), ...(await shelteredHomes())]) {
    const left = await runningPostmaster(path.join(home, 'data'));
    if (left !== undefined) await stopServer(path.join(home, 'data'), left.pid);
  }
  await rm(folder, { recursive: true, force: true });
});

async function shelteredHomes(): Promise<string[]> {
  const names = await readdir(shelter).catch(() => []);
  return names.map((name) => path.join(shelter, name, 'postgres'));
}

async function start(native?: string): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({
    dataDir,
    log,
    shelters: [shelter],
    ...(native === undefined ? {} : { native }),
  });
  started.push(server);
  return server;
}

async function ask(url: string, sql: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(sql);
    return rows[0] === undefined ? undefined : Object.values(rows[0])[0];
  } finally {
    await client.end();
  }
}

async function answers(url: string): Promise<boolean> {
  return ask(url, 'SELECT 1').then(
    () => true,
    () => false,
  );
}

/** Another service: a process of its own that starts the server and prints its URL. */
async function startInAnotherProcess(): Promise<{ child: ChildProcess; url: string }> {
  const compiled = await compileSource('postgres');
  const script = `
    const { startEmbeddedPostgres } = require(${JSON.stringify(path.join(compiled, 'embedded/embedded-postgres.js'))});
    const log = { info() {}, warn() {} };
    startEmbeddedPostgres({ dataDir: process.argv[1], log, shelters: [process.argv[2]] })
      .then((server) => {
        console.log(server.url);
        process.stdin.on('end', () => server.stop().then(() => process.exit(0))).resume();
      });
  `;
  const child = spawn(process.execPath, ['-e', script, dataDir, shelter], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  children.push(child);
  const [chunk] = await new Promise<[Buffer]>((resolve, reject) => {
    child.stdout.once('data', (data: Buffer) => {
      resolve([data]);
    });
    child.once('exit', () => {
      reject(new Error('the other process ended'));
    });
  });
  return { child, url: chunk.toString().trim() };
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    await new Promise((resolve) => child.once('exit', resolve));
  }
}

describe('the embedded PostgreSQL', () => {
  it('starts in DATA_DIR, keeps what was written, and leaves nothing running', async () => {
    const first = await start();
    expect(first).toMatchObject({ adopted: false, dataDir: path.join(dataDir, 'postgres') });
    expect(await ask(first.url, 'SHOW listen_addresses')).toBe('127.0.0.1');
    await ask(first.url, "CREATE TABLE kept AS SELECT 'money'::text AS what");
    await first.stop();
    expect(await answers(first.url)).toBe(false);
    expect(await runningPostmaster(path.join(first.dataDir, 'data'))).toBeUndefined();

    const second = await start();
    expect(second).toMatchObject({ adopted: false, url: first.url });
    expect(await ask(second.url, 'SELECT what FROM kept')).toBe('money');
  });

  it('lets nobody in without the password, which only its own OS user can read', async () => {
    await havingStartedBefore();
    const server = await start();
    const url = new URL(server.url);
    url.password = 'guess';
    await expect(ask(url.href, 'SELECT 1')).rejects.toThrow('password authentication failed');
    const { mode } = await stat(server.dataDir);
    expect(mode & 0o077).toBe(0);
    expect(url.port).not.toBe('5432');
    expect(JSON.stringify(log.entries)).not.toContain(new URL(server.url).password);
  });

  it('is adopted after a kill -9 of the process that started it, and stopped by the one that adopted it', async () => {
    await havingStartedBefore();
    const { child, url } = await startInAnotherProcess();
    child.kill('SIGKILL');
    await exited(child);
    expect(await answers(url)).toBe(true);

    const server = await start();
    expect(server).toMatchObject({ adopted: true, url });
    await server.stop();
    expect(await answers(url)).toBe(false);
  });

  it('is shared by two services and stopped by the last of them', async () => {
    await havingStartedBefore();
    const { child, url } = await startInAnotherProcess();
    const own = await start();
    expect(own).toMatchObject({ adopted: true, url });
    await own.stop();
    expect(log.messages()).toContain('left PostgreSQL running: another service uses it');
    expect(await answers(url)).toBe(true);

    child.stdin?.end();
    await exited(child);
    expect(await answers(url)).toBe(false);
  });

  it('is not pulled away from under a service that did not start it', async () => {
    await havingStartedBefore();
    const { child, url } = await startInAnotherProcess();
    const own = await start();
    child.stdin?.end();
    await exited(child);
    expect(await answers(url)).toBe(true);
    await own.stop();
    expect(await answers(url)).toBe(false);
  });

  it('is one server for two services that start at the same time on an empty DATA_DIR', async () => {
    const [one, other] = await Promise.all([start(), startInAnotherProcess()]);
    expect(one.url).toBe(other.url);
    await until(async () => (await readdir(dataDir)).join() === 'postgres', 'only one cluster is left');
  });

  it('comes back on the same address when it dies', async () => {
    await havingStartedBefore();
    const server = await start();
    const before = await runningPostmaster(path.join(server.dataDir, 'data'));
    process.kill(before?.pid ?? 0, 'SIGKILL');
    await until(() => answers(server.url), 'the server is back');
    const after = await runningPostmaster(path.join(server.dataDir, 'data'));
    expect(after?.pid).not.toBe(before?.pid);
  });

  it('is not disturbed by a start that was killed while it made the cluster', async () => {
    const gone = spawn('true');
    await exited(gone);
    const half = path.join(dataDir, `postgres.new-${String(gone.pid)}-0badcafe`);
    await mkdir(path.join(half, 'data'), { recursive: true });
    await chmod(dataDir, 0o755);
    await writeFile(path.join(half, 'data', 'PG_VERSION'), '18\n');
    const server = await start();
    expect(await ask(server.url, 'SELECT 1')).toBe(1);
    expect(await readdir(dataDir)).toEqual(['postgres']);
  });

  it('starts beside a lock file whose pid belongs to another program now', async () => {
    await havingStartedBefore();
    const server = await start();
    await server.stop();
    const stale = `${String(process.pid)}\n${path.join(server.dataDir, 'data')}\n1\n5432\n\n127.0.0.1\n\nready\n`;
    await writeFile(path.join(server.dataDir, 'data', 'postmaster.pid'), stale);
    expect(await start()).toMatchObject({ adopted: false, url: server.url });
  });

  it('says in the words of PostgreSQL why it cannot start', async () => {
    await havingStartedBefore();
    const server = await start();
    await server.stop();
    await writeFile(path.join(server.dataDir, 'data', 'PG_VERSION'), '17\n');
    await expect(start()).rejects.toThrow('database files are incompatible with server');
  });

  asRoot('runs as another OS user for root, who keeps DATA_DIR', async () => {
    await havingStartedBefore();
    const server = await start();
    expect((await stat(server.dataDir)).uid).not.toBe(0);
    expect((await stat(dataDir)).uid).toBe(0);
  });

  asRoot(
    'lies where its OS user can go when DATA_DIR is under a folder of mode 0700, and says where',
    async () => {
      await mkdir(path.join(folder, 'home'), { mode: 0o700 });
      dataDir = path.join(folder, 'home', 'project', '.data');
      const server = await start();
      expect(path.dirname(path.dirname(server.dataDir))).toBe(shelter);
      expect(log.messages().join('\n')).toContain(`PostgreSQL keeps its data in ${server.dataDir}`);
      await ask(server.url, 'CREATE TABLE kept (what text)');
      await server.stop();

      await chmod(path.join(folder, 'home'), 0o755);
      const again = await start();
      expect(again.dataDir).toBe(server.dataDir);
      expect(await ask(again.url, 'SELECT count(*)::int FROM kept')).toBe(0);
      await again.stop();

      await rm(again.dataDir, { recursive: true });
      await expect(start()).rejects.toThrow('it is not there');
    },
  );

  asRoot('runs from a copy of the binaries when its OS user cannot reach the installed ones', async () => {
    await havingStartedBefore();
    const native = path.join(folder, 'home', 'node_modules', 'native');
    await mkdir(path.join(folder, 'home'), { mode: 0o700 });
    await cp(packagedBinaries(), native, { recursive: true, verbatimSymlinks: true });
    const server = await start(native);
    expect(await ask(server.url, 'SELECT 1')).toBe(1);
    const [copy] = (await readdir(shelter)).filter((name) => name.startsWith('postgres-'));
    const { uid, mode } = await stat(path.join(shelter, copy ?? '', 'bin', 'postgres'));
    expect({ uid, writable: mode & 0o022 }).toEqual({ uid: 0, writable: 0 });
    expect(log.messages().join()).toContain('runs from a copy of its binaries');
  });

  it('makes the library links that npm leaves out with --ignore-scripts', async () => {
    await havingStartedBefore();
    const native = path.join(folder, 'node_modules', 'native');
    await cp(packagedBinaries(), native, { recursive: true, verbatimSymlinks: true });
    const links = JSON.parse(await readFile(path.join(native, 'pg-symlinks.json'), 'utf8')) as {
      target: string;
    }[];
    for (const { target } of links) await rm(path.join(native, '..', target), { force: true });
    const server = await start(native);
    expect(await ask(server.url, 'SELECT 1')).toBe(1);
  });
});
