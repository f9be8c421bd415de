import type pg from 'pg';
import type { EventSource } from '../event-source';
import type { ReadModel } from '../read-model';
import { LedgerFeed } from './ledger-feed';
import type { RunnerLog } from './ledger-feed';
import { ProjectionConnection } from './projection-connection';
import { rebuild } from './rebuild';
import type { RebuildProgress } from './rebuild';
import type { ModelState } from './tracked-model';

export interface ProjectionRequest {
  readonly models: readonly ReadModel[];
  readonly source: EventSource;
  /** A connected client for the runner alone. */
  readonly connect: () => Promise<pg.Client>;
  /** For rebuilds. */
  readonly pool: Pick<pg.Pool, 'query' | 'connect'>;
  readonly schema: string;
  readonly log: RunnerLog;
  readonly batchSize?: number;
  readonly pollMs?: number;
  readonly gatherMs?: number;
  readonly standInAfterMs?: number;
}

export interface ModelStatus {
  readonly name: string;
  readonly version: number;
  readonly state: ModelState;
  /** Revision of the last event in it; −1 for none. */
  readonly position: number;
  /** Events the log is known to be ahead. */
  readonly lag: number;
  readonly error?: string;
  readonly rebuilding?: RebuildProgress;
}

/** For `/readyz` and metrics. */
export interface LedgerStatus {
  readonly ledger: string;
  /** Whether this process feeds the models, or follows another that does. */
  readonly isLeading: boolean;
  /** Why nothing can be fed: no connection, no log. */
  readonly error?: string;
  readonly models: readonly ModelStatus[];
}

interface Waiter {
  readonly position: number;
  readonly models: readonly string[] | undefined;
  readonly done: (result: 'seen' | 'behind') => void;
}

interface Followed {
  readonly feed: LedgerFeed;
  readonly waiters: Set<Waiter>;
  readonly rebuilding: Map<string, RebuildProgress>;
  readonly abort: AbortController;
  upgrades: Promise<unknown>;
}

const BATCH_SIZE = 2_000;
const POLL_MS = 250;
const GATHER_MS = 50;
const STAND_IN_AFTER_MS = 2_000;
const UPGRADE_RETRY_MS = 30_000;

/** Keeps the read models of this process's ledgers up to the log, and knows how far they are. */
export class Projection {
  private readonly connection: ProjectionConnection;
  private readonly followed = new Map<string, Followed>();

  constructor(private readonly request: ProjectionRequest) {
    this.connection = new ProjectionConnection({
      connect: request.connect,
      schema: request.schema,
      onMoved: (ledger) => this.followed.get(ledger)?.feed.wake(true),
    });
  }

  /** Begins to feed, or to follow, a ledger's models; models that older code built are rebuilt. */
  follow(ledger: string): void {
    if (this.followed.has(ledger)) return;
    const { models, source, log } = this.request;
    const feed = new LedgerFeed({
      ledger,
      models,
      source,
      log,
      connection: this.connection,
      batchSize: this.request.batchSize ?? BATCH_SIZE,
      pollMs: this.request.pollMs ?? POLL_MS,
      gatherMs: this.request.gatherMs ?? GATHER_MS,
      standInAfterMs: this.request.standInAfterMs ?? STAND_IN_AFTER_MS,
      onMoved: () => {
        this.settle(ledger);
      },
    });
    const followed: Followed = {
      feed,
      waiters: new Set(),
      rebuilding: new Map(),
      abort: new AbortController(),
      upgrades: Promise.resolve(),
    };
    this.followed.set(ledger, followed);
    feed.start();
  }

  async unfollow(ledger: string): Promise<void> {
    const followed = this.followed.get(ledger);
    if (!followed) return;
    this.followed.delete(ledger);
    followed.abort.abort();
    for (const waiter of followed.waiters) waiter.done('behind');
    await Promise.all([followed.feed.stop(), followed.upgrades]);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.followed.keys()].map((ledger) => this.unfollow(ledger)));
    await this.connection.close();
  }

  /** The revision that all models (or those named) have seen; −1 for none. */
  position(ledger: string, models?: readonly string[]): number {
    const feed = this.followed.get(ledger)?.feed;
    const asked = feed?.tracked.filter(({ model }) => models?.includes(model.name) ?? true) ?? [];
    return asked.length === 0 ? -1 : Math.min(...asked.map(({ position }) => position));
  }

  /**
   * Waits until the models (or those named) have seen a revision, whichever process projects it. The ledger must be followed.
   */
  waitFor(
    ledger: string,
    position: number,
    timeoutMs: number,
    models?: readonly string[],
  ): Promise<'seen' | 'behind'> {
    if (this.position(ledger, models) >= position) return Promise.resolve('seen');
    const followed = this.followed.get(ledger);
    if (!followed) return Promise.resolve('behind');
    return new Promise((resolve) => {
      const done = (result: 'seen' | 'behind'): void => {
        clearTimeout(timer);
        followed.waiters.delete(waiter);
        resolve(result);
      };
      const waiter: Waiter = { position, models, done };
      const timer = setTimeout(() => {
        done('behind');
      }, timeoutMs);
      followed.waiters.add(waiter);
      followed.feed.hurry();
    });
  }

  status(): LedgerStatus[] {
    return [...this.followed].map(([ledger, { feed, rebuilding }]) => ({
      ledger,
      isLeading: feed.isLeading,
      ...(feed.error !== undefined && { error: feed.error }),
      models: feed.tracked.map(({ model, version, state, position, error }) => ({
        name: model.name,
        version,
        state,
        position,
        lag: Math.max(0, feed.head - position),
        ...(error !== undefined && { error }),
        ...(rebuilding.has(model.name) && { rebuilding: rebuilding.get(model.name) }),
      })),
    }));
  }

  private settle(ledger: string): void {
    const followed = this.followed.get(ledger);
    if (!followed) return;
    for (const waiter of followed.waiters) {
      if (this.position(ledger, waiter.models) >= waiter.position) waiter.done('seen');
    }
    this.upgrade(ledger, followed);
  }

  /** Models whose rows were built by older code, or by a rebuild that was stopped, are built anew: once, here. */
  private upgrade(ledger: string, followed: Followed): void {
    const { feed, rebuilding, abort } = followed;
    for (const { model, shape, version } of feed.tracked) {
      if (version === 0 || shape >= model.shape || rebuilding.has(model.name) || !feed.isLeading) continue;
      const begun = { ledger, model: model.name, position: -1, head: feed.head, eventsPerSecond: 0 };
      rebuilding.set(model.name, begun);
      const { source, pool, log } = this.request;
      log.info('a read model is rebuilt', { ledger, model: model.name, from: shape, to: model.shape });
      const onProgress = (progress: RebuildProgress): void => void rebuilding.set(model.name, progress);
      const work = rebuild({ ledger, model, source, pool, onProgress, resume: true, signal: abort.signal })
        .then(() => {
          rebuilding.delete(model.name);
          feed.wake(true);
        })
        .catch((error: unknown) => {
          if (abort.signal.aborted) return;
          log.warn('a read model could not be rebuilt', { ledger, model: model.name, error: String(error) });
          // Seen as unbuilt again after a while, at the next event.
          setTimeout(() => rebuilding.delete(model.name), UPGRADE_RETRY_MS).unref();
        });
      followed.upgrades = Promise.all([followed.upgrades, work]);
    }
  }
}
