import { Agent, request } from 'node:http';

export interface Reply {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** The service, through its HTTP interface alone. Connections are kept and bounded. */
export class LedgerApi {
  private readonly agent: Agent;

  constructor(
    readonly url: string,
    connections: number,
  ) {
    this.agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  get(path: string): Promise<Reply> {
    return this.call('GET', path, undefined);
  }

  post(path: string, body: unknown): Promise<Reply> {
    return this.call('POST', path, body);
  }

  /** A PUT that must succeed: the demo's own set-up. */
  async put(path: string, body: unknown): Promise<Reply> {
    const reply = await this.call('PUT', path, body);
    if (reply.status >= 300) throw new Error(`PUT ${path}: ${reply.status} ${JSON.stringify(reply.body)}`);
    return reply;
  }

  close(): void {
    this.agent.destroy();
  }

  private call(method: string, path: string, body: unknown): Promise<Reply> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers =
      text === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    return new Promise((resolve, reject) => {
      const sent = request(new URL(path, this.url), { method, agent: this.agent, headers }, (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('error', reject);
        answer.on('end', () => {
          const read = Buffer.concat(parts).toString('utf8');
          const json = read === '' ? {} : (JSON.parse(read) as Record<string, unknown>);
          resolve({ status: answer.statusCode ?? 0, body: json });
        });
      });
      sent.on('error', reject);
      sent.end(text);
    });
  }
}

/** Runs tasks with at most so many at once; the first failure ends it. */
export async function eachAtMost<T>(
  items: readonly T[],
  atOnce: number,
  task: (item: T, index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next;
      next += 1;
      const item = items[index];
      if (item !== undefined) await task(item, index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
}
