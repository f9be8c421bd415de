import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createTestDatabase } from '../support/database';
import type { TestDatabase } from '../support/database';

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: any;
}

/** A real service in a process of its own, on a database of the test's own. */
export class RunningService {
  private constructor(
    readonly process: ChildProcess,
    readonly url: string,
    readonly dataDir: string,
    private readonly heard: { readonly text: string },
  ) {}

  /** Everything it has written so far. */
  get output(): string {
    return this.heard.text;
  }

  static async start(database: TestDatabase, env: NodeJS.ProcessEnv = {}): Promise<RunningService> {
    const dataDir = mkdtempSync(join(tmpdir(), 'spend-ledger-e2e-'));
    const child = fork(resolve('dist/main.js'), {
      env: {
        PATH: process.env['PATH'],
        DATABASE_URL: database.url,
        DATABASE_SCHEMA: database.schema,
        DATA_DIR: dataDir,
        PORT: '0',
        AUTH: 'off',
        LOG_FORMAT: 'json',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const heard = { text: '' };
    const hear = (part: Buffer) => {
      heard.text += part.toString('utf8');
    };
    child.stdout?.on('data', hear);
    child.stderr?.on('data', hear);
    const url = await new Promise<string>((tell, fail) => {
      child.once('message', (message: { url: string }) => {
        tell(message.url);
      });
      child.once('exit', (code) => {
        rmSync(dataDir, { recursive: true, force: true });
        fail(new Error(`the service ended (${code}): ${heard.text}`));
      });
    });
    return new RunningService(child, url, dataDir, heard);
  }

  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Reply> {
    const answer = await fetch(new URL(path.startsWith('/') ? path : `/v1/ledgers/main/${path}`, this.url), {
      method,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await answer.text();
    const isJson =
      answer.headers.get('content-type')?.includes('json') &&
      !answer.headers.get('content-type')?.includes('ndjson');
    return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text };
  }

  get = (path: string, headers?: Record<string, string>) => this.call('GET', path, undefined, headers);
  post = (path: string, body?: unknown, headers?: Record<string, string>) =>
    this.call('POST', path, body, headers);
  put = (path: string, body?: unknown) => this.call('PUT', path, body);

  /** Ends it; the exit code. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const code = await new Promise<number | null>((tell) => {
      if (this.process.exitCode !== null || this.process.signalCode !== null) tell(this.process.exitCode);
      else this.process.once('exit', tell);
      this.process.kill(signal);
    });
    rmSync(this.dataDir, { recursive: true, force: true });
    return code;
  }
}

export { createTestDatabase };
export type { TestDatabase };

export const ACCOUNT = { provider: 'anthropic', fingerprint: 'a1'.repeat(32) };

/** 0.02048 USD of output at least, and 1 USD a million of input. */
export const check = (requestId: string, inputTokens = 1_000, rest: object = {}) => ({
  requestId,
  account: ACCOUNT,
  model: 'claude-haiku-4-5',
  estimate: { inputTokens },
  ...rest,
});
