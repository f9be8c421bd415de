import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { open, readFile, readlink, realpath, rm, type FileHandle } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { PostgresBinaries } from './binaries';
import { identity, isAlive, serverEnvironment } from './cluster';
import type { OsAccount } from './os-account';

/** What a running server tells of itself in `postmaster.pid`. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  /** `starting`, `ready`, `stopping`, `standby`. */
  readonly status: string;
}

export interface LaunchRequest {
  readonly binaries: PostgresBinaries;
  readonly account: OsAccount | undefined;
  readonly data: string;
  readonly port: number;
  /** The server's own words, kept over its starts. */
  readonly logFile: string;
}

const PID_FILE = 'postmaster.pid';
const POLL_MS = 20;

/** The server of this data folder, as its lock file has it; undefined where there is none or it is dead. */
export async function runningPostmaster(data: string): Promise<Postmaster | undefined> {
  const text = await readFile(path.join(data, PID_FILE), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const lines = text.split('\n').map((line) => line.trim());
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 0 || !(await isPostmasterOf(pid, data))) return undefined;
  return { pid, port: Number(lines[3] ?? 0), status: lines[7] ?? 'starting' };
}

/**
 * A pid alone proves nothing: after a restart of a machine or container it may be anybody's. A postmaster's
 * working directory is its data folder; where the system does not show that, a live pid has to do.
 */
async function isPostmasterOf(pid: number, data: string): Promise<boolean> {
  if (!isAlive(pid)) return false;
  try {
    return (await readlink(`/proc/${String(pid)}/cwd`)) === (await realpath(data));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return process.platform !== 'linux' || (code !== 'ENOENT' && code !== 'ESRCH');
  }
}

/** A lock file that no live server of this folder stands behind would keep the next one from starting. */
export async function removeStaleLock(data: string): Promise<void> {
  if ((await runningPostmaster(data)) === undefined) await rm(path.join(data, PID_FILE), { force: true });
}

/**
 * Starts the server in a session of its own, so that a Ctrl-C in the terminal reaches the service and not its
 * database. Answers when it takes connections; throws with the server's own words where it does not.
 */
export async function launchServer(request: LaunchRequest): Promise<Postmaster> {
  const log = await openLog(request.logFile);
  try {
    const { size } = await log.stat();
    const child = spawn(request.binaries.postgres, serverArguments(request), {
      ...identity(request.account),
      cwd: '/',
      env: serverEnvironment(),
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    });
    let ended: string | undefined;
    child.on('error', (error) => (ended = error.message));
    child.on('exit', (code, signal) => (ended = `it exited with ${String(code ?? signal)}`));
    const deadline = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      const postmaster = await runningPostmaster(request.data);
      if (postmaster?.pid === child.pid && postmaster?.status === 'ready') {
        child.unref();
        return postmaster;
      }
      if (ended !== undefined)
        throw new Error(`PostgreSQL did not start: ${ended}\n${await wordsSince(log, size)}`);
      if (performance.now() > deadline) {
        child.kill('SIGQUIT');
        throw new Error(
          `PostgreSQL did not start within ${String(START_TIMEOUT_MS)} ms: see ${request.logFile}`,
        );
      }
      await delay(POLL_MS);
    }
  } finally {
    await log.close();
  }
}

/** Crash recovery of a large log takes its time. */
const START_TIMEOUT_MS = 120_000;
const MAX_LOG_BYTES = 10_000_000;

/** The folder belongs to the server's OS user: root must not follow a link that lies there. */
async function openLog(file: string): Promise<FileHandle> {
  const { O_RDWR, O_CREAT, O_APPEND, O_NOFOLLOW } = constants;
  const log = await open(file, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
  if ((await log.stat()).size > MAX_LOG_BYTES) await log.truncate();
  return log;
}

async function wordsSince(log: FileHandle, position: number): Promise<string> {
  const { buffer, bytesRead } = await log.read({ buffer: Buffer.alloc(4_096), position });
  return buffer.toString('utf8', 0, bytesRead).trim();
}

/**
 * Starts, stops and failed log-ins are logged. Errors of statements are not: their callers get them, and a log that
 * nobody rotates must stay small.
 */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_checkpoints: 'off',
};

function serverArguments({ data, port }: LaunchRequest): string[] {
  const flags = Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return ['-D', data, '-p', String(port), ...flags];
}

/**
 * Stops a server: open transactions are rolled back, everything else is on disk. Where it does not end in time it
 * is stopped hard and recovers at its next start. Its lock file is gone when it has ended.
 */
export async function stopServer(data: string, pid: number, timeoutMs = 30_000): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    signalServer(pid, signal);
    if (await goneWithin(data, pid, timeoutMs)) return;
  }
  throw new Error(`PostgreSQL (pid ${String(pid)}) does not end`);
}

function signalServer(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function goneWithin(data: string, pid: number, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline) {
    if ((await runningPostmaster(data))?.pid !== pid) return true;
    await delay(POLL_MS);
  }
  return false;
}

/** A port on loopback that nobody holds at this moment; `preferred` where that is one. */
export async function freePort(preferred = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error) => {
      if (preferred === 0) reject(error);
      else resolve(freePort());
    });
    probe.listen({ host: '127.0.0.1', port: preferred, exclusive: true }, () => {
      const address = probe.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      probe.close(() => {
        resolve(port);
      });
    });
  });
}
