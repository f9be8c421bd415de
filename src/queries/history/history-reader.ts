import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { EventStore } from '../../event-store/event-store';
import type { Totals } from '../../read-models/totals';
import type { HistoryRequest, HistoryResult } from './fold';
import type { StateView } from './state-view';
import type { Verification } from './verification';
import type { FromWorker, ToWorker } from './worker';

export interface SnapshotText {
  /** Of the last event in it. */
  readonly revision: number;
  readonly text: string;
}

export interface HistoryParts {
  readonly store: EventStore;
  /** The nearest snapshot at or below a revision or moment. */
  readonly snapshot: (
    ledger: string,
    until: { revision?: number; atMs?: number },
  ) => Promise<SnapshotText | undefined>;
  readonly totals: (ledger: string) => Promise<Totals | undefined>;
}

const PAGE = 2_000;
const MOST_WAITING = 16;

/** Too many questions about history at once. */
export class HistoryBusyError extends Error {
  override readonly name = 'HistoryBusyError';
}

/** Folds history in a thread of its own, one question after another, so that checks are never kept waiting. */
export class HistoryReader {
  private worker: Worker | undefined;
  private turn: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  constructor(private readonly parts: HistoryParts) {}

  /** The ledger as it stood at a moment or revision, else now. */
  state(ledger: string, atMs: number | undefined, revision: number | undefined): Promise<StateView> {
    return this.inTurn(async () => {
      const snapshot = await this.parts.snapshot(ledger, { revision, atMs });
      const request = { kind: 'state' as const, ledger, snapshot: snapshot?.text, atMs, revision };
      return (await this.run(request, (snapshot?.revision ?? -1) + 1)) as StateView;
    });
  }

  verify(ledger: string): Promise<Verification> {
    return this.inTurn(async () => {
      const expected = await this.parts.totals(ledger);
      return (await this.run({ kind: 'verify', ledger, expected }, 0)) as Verification;
    });
  }

  async close(): Promise<void> {
    await this.worker?.terminate();
  }

  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.waiting >= MOST_WAITING) throw new HistoryBusyError('too many questions about history at once');
    this.waiting += 1;
    const mine = this.turn.then(work, work);
    this.turn = mine.catch(() => undefined);
    try {
      return await mine;
    } finally {
      this.waiting -= 1;
    }
  }

  private async run(request: HistoryRequest, from: number): Promise<HistoryResult> {
    const { ledger } = request;
    const head = (await this.parts.store.head(ledger))?.revision ?? -1;
    let answer = await this.ask({ kind: 'begin', request });
    for (let next = from; next <= head && answer.kind === 'ready' && answer.more;) {
      const events = await this.parts.store.read(ledger, {
        from: next,
        limit: Math.min(PAGE, head + 1 - next),
      });
      if (events.length === 0) break;
      next += events.length;
      answer = await this.ask({ kind: 'page', events: events.map(({ bytes }) => new Uint8Array(bytes)) });
    }
    if (answer.kind === 'ready') answer = await this.ask({ kind: 'end' });
    if (answer.kind === 'result') return answer.result;
    throw new Error(answer.kind === 'failed' ? answer.message : 'the history worker gave no result');
  }

  private ask(message: ToWorker): Promise<FromWorker> {
    const worker = (this.worker ??= this.start());
    return new Promise((resolve, reject) => {
      const done = () => {
        worker.off('message', answered);
        worker.off('error', failed);
        worker.off('exit', failed);
      };
      const answered = (answer: FromWorker) => {
        done();
        resolve(answer);
      };
      const failed = (error: unknown) => {
        done();
        this.worker = undefined;
        reject(error instanceof Error ? error : new Error('the history worker ended'));
      };
      worker.on('message', answered).on('error', failed).on('exit', failed);
      worker.postMessage(message);
    });
  }

  private start(): Worker {
    const worker = new Worker(join(__dirname, 'worker.js'));
    worker.unref();
    return worker;
  }
}
