import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestDatabase } from '../support/database';

export interface Reply {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

export interface ReadsService {
  readonly url: string;
  get(path: string): Promise<Reply>;
  send(method: string, path: string, body?: unknown): Promise<Reply>;
  stop(): Promise<void>;
}

const PATIENCE_MS = 20_000;

/** The built service as a process of its own, on a test's database. */
export async function startService({ url: databaseUrl, schema }: TestDatabase): Promise<ReadsService> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'reads-'));
  const child = fork(path.join(__dirname, '../../dist/main.js'), {
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      DATABASE_SCHEMA: schema,
      DATA_DIR: dataDir,
      AUTH: 'off',
      HOST: '127.0.0.1',
      PORT: '0',
      LOG_LEVEL: 'warn',
      LOG_FORMAT: 'json',
      POLICY_FILE: '',
      DAILY_LIMIT: '',
    },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      resolve();
    });
  });
  const url = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error('the service did not start in time'));
    }, PATIENCE_MS);
    child.once('message', (message: { url: string }) => {
      clearTimeout(timer);
      resolve(message.url);
    });
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`the service ended with ${String(code)}`));
    });
  });
  const send = async (method: string, at: string, body?: unknown): Promise<Reply> => {
    const answer = await fetch(new URL(at, url), {
      method,
      ...(body !== undefined && {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    });
    const text = await answer.text();
    return { status: answer.status, body: (text === '' ? {} : JSON.parse(text)) as Reply['body'] };
  };
  return {
    url,
    get: (at) => send('GET', at),
    send,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export interface SentEvent {
  readonly id: number;
  readonly event: string;
  readonly data: Record<string, unknown>;
}

/** A live stream of server-sent events, read one by one. */
export class EventStream {
  private text = '';
  private constructor(
    readonly status: number,
    private readonly reader: ReadableStreamDefaultReader<Uint8Array>,
    private readonly abort: AbortController,
  ) {}

  static async open(url: string, lastEventId?: number): Promise<EventStream> {
    const abort = new AbortController();
    const answer = await fetch(url, {
      headers: {
        accept: 'text/event-stream',
        ...(lastEventId !== undefined && { 'last-event-id': String(lastEventId) }),
      },
      signal: abort.signal,
    });
    if (!answer.body) throw new Error('a stream without a body');
    return new EventStream(answer.status, answer.body.getReader() as never, abort);
  }

  /** The next events; throws when they do not come in time. */
  async take(count: number): Promise<SentEvent[]> {
    const timer = setTimeout(() => {
      this.abort.abort();
    }, PATIENCE_MS);
    const taken: SentEvent[] = [];
    try {
      while (taken.length < count) {
        const end = this.text.indexOf('\n\n');
        if (end < 0) {
          const { done, value } = await this.reader.read();
          if (done) throw new Error(`the stream ended after ${String(taken.length)} events`);
          this.text += Buffer.from(value).toString('utf8');
          continue;
        }
        const frame = this.text.slice(0, end);
        this.text = this.text.slice(end + 2);
        const fields = new Map(frame.split('\n').map((line) => line.split(/: (.*)/s, 2) as [string, string]));
        const [id, event, data] = [fields.get('id'), fields.get('event'), fields.get('data')];
        if (id !== undefined && event !== undefined && data !== undefined)
          taken.push({ id: Number(id), event, data: JSON.parse(data) as Record<string, unknown> });
      }
      return taken;
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.abort.abort();
  }
}
