import path from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Log } from '../../postgres/log';
import { QueryError } from '../query-errors';
import type { HistoryDatabase, HistoryJob, HistoryReply, HistoryResults } from './messages';

export interface HistoryOptions {
  readonly database: HistoryDatabase;
  readonly log: Log;
  /** Compiled `worker.js`; default: beside this file. */
  readonly script?: string;
  readonly queueLimit?: number;
  readonly timeLimitMs?: number;
  readonly idleMs?: number;
}

interface Waiting {
  readonly job: HistoryJob;
  readonly resolve: (result: HistoryResults[keyof HistoryResults]) => void;
  readonly reject: (error: QueryError) => void;
}

const QUEUE_LIMIT = 16;
const TIME_LIMIT_MS = 600_000;
/** An idle thread gives its connection and memory back. */
const IDLE_MS = 30_000;
const MEMORY_MB = 2_048;

/**
 * Runs what must fold much of a log in a thread of its own, one job at a time, so that no check waits for it. A job that takes
 * too long, or a thread that dies, costs that job alone.
 */
export class HistoryReader {
  private readonly queue: Waiting[] = [];
  private running: Waiting | undefined;
  private worker: Worker | undefined;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(private readonly options: HistoryOptions) {}

  /** Throws QueryError: history_busy where too many wait, history_timeout, history_failed. */
  run<K extends HistoryJob['kind']>(job: HistoryJob & { readonly kind: K }): Promise<HistoryResults[K]> {
    if (this.closed || this.queue.length >= (this.options.queueLimit ?? QUEUE_LIMIT)) {
      const reason = this.closed ? 'the service is stopping' : 'too many questions about history wait';
      return Promise.reject(new QueryError('history_busy', reason));
    }
    return new Promise((resolve, reject) => {
      this.queue.push({ job, resolve: resolve as Waiting['resolve'], reject });
      this.next();
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    const ended = new QueryError('history_busy', 'the service is stopping');
    for (const { reject } of this.queue.splice(0)) reject(ended);
    this.settle()?.reject(ended);
    await this.end();
  }

  private next(): void {
    if (this.running || this.closed) return;
    const waiting = this.queue.shift();
    clearTimeout(this.timer);
    if (!waiting) {
      this.timer = setTimeout(() => void this.end(), this.options.idleMs ?? IDLE_MS).unref();
      return;
    }
    this.running = waiting;
    this.timer = setTimeout(() => {
      this.fail(new QueryError('history_timeout', 'folding the history took too long'));
    }, this.options.timeLimitMs ?? TIME_LIMIT_MS);
    this.started().postMessage(waiting.job);
  }

  private started(): Worker {
    if (this.worker) return this.worker;
    const { database, script = path.join(__dirname, 'worker.js') } = this.options;
    const worker = new Worker(script, {
      workerData: database,
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    });
    worker.unref();
    worker.on('message', (reply: HistoryReply) => {
      if (worker === this.worker) this.reply(reply);
    });
    const lost = (reason: string): void => {
      if (worker !== this.worker) return;
      this.options.log.warn('the history worker ended', { reason });
      this.fail(new QueryError('history_failed', 'the history could not be folded'));
    };
    worker.on('error', (error) => {
      lost(error instanceof Error ? error.message : String(error));
    });
    worker.on('exit', (code) => {
      lost(`exit code ${code}`);
    });
    this.worker = worker;
    return worker;
  }

  private reply(reply: HistoryReply): void {
    const waiting = this.settle();
    if (reply.kind === 'done') waiting?.resolve(reply.result);
    else {
      this.options.log.warn('the history could not be folded', { reason: reply.message });
      waiting?.reject(new QueryError('history_failed', 'the history could not be folded'));
    }
    this.next();
  }

  /** The thread is of no use any more: the next job gets another. */
  private fail(error: QueryError): void {
    const waiting = this.settle();
    void this.end();
    waiting?.reject(error);
    this.next();
  }

  private settle(): Waiting | undefined {
    clearTimeout(this.timer);
    const waiting = this.running;
    this.running = undefined;
    return waiting;
  }

  private async end(): Promise<void> {
    clearTimeout(this.timer);
    const { worker } = this;
    this.worker = undefined;
    await worker?.terminate();
  }
}
