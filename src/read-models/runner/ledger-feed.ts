import type { Recorded } from '../../domain/events';
import type { EventSource } from '../event-source';
import { LogBrokenError } from '../read-model';
import type { ReadModel, Sql } from '../read-model';
import { applicable, runStep } from './batch-step';
import { insertCheckpoints, readCheckpoints } from './checkpoints';
import type { ProjectionConnection } from './projection-connection';
import { TrackedModel } from './tracked-model';
import { ConnectionLostError } from './transaction';

/** Where the projection tells what went wrong. */
export interface RunnerLog {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
}

export interface FeedRequest {
  readonly ledger: string;
  readonly models: readonly ReadModel[];
  readonly source: EventSource;
  readonly connection: ProjectionConnection;
  readonly log: RunnerLog;
  /** Events a transaction at most. */
  readonly batchSize: number;
  /** How long to wait for a wake-up before looking again. */
  readonly pollMs: number;
  /** How long events may gather after a step. */
  readonly gatherMs: number;
  /** How long checkpoints may stand still behind the log before a process without the lock goes on itself. */
  readonly standInAfterMs: number;
  /** Called whenever a position may have moved. */
  readonly onMoved: () => void;
}

/** A lost connection or an unreadable log: how long until the next try. */
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5_000;

/**
 * Feeds the read models of one ledger: the healthy ones together, one transaction a batch, those behind one by one. Several processes may run it; the one with the lock works, the others follow the checkpoints,
 * and each batch counts once whoever runs it.
 */
export class LedgerFeed {
  readonly tracked: readonly TrackedModel[];
  /** The highest revision known to be in the log. */
  head = -1;
  isLeading = false;
  /** Why the ledger cannot be fed at all: no connection, no log. */
  error: string | undefined;
  private stopped = false;
  private stale = true;
  private woken = false;
  private wakeUp: (() => void) | undefined;
  private isAwaited = false;
  private stopGathering: (() => void) | undefined;
  /** Since when nobody moved a checkpoint although the log is ahead. */
  private stillSince = performance.now();
  private running: Promise<void> | undefined;
  private unsubscribe: () => void = () => undefined;

  constructor(private readonly request: FeedRequest) {
    this.tracked = request.models.map((model) => new TrackedModel(model));
  }

  start(): void {
    this.unsubscribe = this.request.source.onNew(this.request.ledger, () => {
      this.wake();
    });
    this.running ??= this.run();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.unsubscribe();
    this.hurry();
    await this.running;
    await this.request.connection.unlock(this.request.ledger).catch(() => undefined);
  }

  /** There may be something to do; `stale`: what is known of the checkpoints may be old. */
  wake(stale = false): void {
    this.stale ||= stale;
    this.woken = true;
    this.wakeUp?.();
  }

  /** Somebody waits for what is in the log already. */
  hurry(): void {
    this.isAwaited = true;
    this.stopGathering?.();
    this.wake();
  }

  private async run(): Promise<void> {
    let failures = 0;
    while (!this.stopped) {
      try {
        const worked = await this.turn();
        failures = 0;
        this.error = undefined;
        if (worked) await this.gather();
        else await this.idle(this.request.pollMs);
      } catch (error) {
        this.report(error);
        this.stale = true;
        await this.idle(Math.min(FIRST_RETRY_MS * 2 ** failures, LAST_RETRY_MS), true);
        failures = Math.min(failures + 1, 8);
      }
    }
  }

  private report(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (this.error !== message) {
      this.request.log.warn('read models cannot be fed', { ledger: this.request.ledger, error: message });
    }
    this.error = message;
  }

  /** One round over the models; false where there was nothing to do. */
  private async turn(): Promise<boolean> {
    const { connection } = this.request;
    this.woken = false;
    this.isAwaited = false;
    this.isLeading = await connection.exclusive((sql) => connection.holdsLock(sql, this.request.ledger));
    if (this.stale || !this.isLeading) await this.refresh();
    if (!this.isLeading && !(await this.mustStandIn())) return false;
    const worked = await this.feedLive();
    return (await this.feedBehind()) || worked;
  }

  private async refresh(): Promise<void> {
    const { connection, ledger, models } = this.request;
    this.stale = false;
    const before = this.positions();
    await connection.exclusive(async (sql) => {
      let checkpoints = await readCheckpoints(sql, ledger);
      if (models.some(({ name }) => !checkpoints.some(({ model }) => model === name))) {
        await insertCheckpoints(sql, ledger, models);
        checkpoints = await readCheckpoints(sql, ledger);
      }
      for (const tracked of this.tracked) {
        const checkpoint = checkpoints.find(({ model }) => model === tracked.model.name);
        if (checkpoint) tracked.refresh(checkpoint);
      }
    });
    const front = this.front();
    for (const tracked of this.tracked) {
      if (tracked.state === 'live' && tracked.position < front) tracked.state = 'catching-up';
      if (tracked.state === 'catching-up' && tracked.position >= front) tracked.state = 'live';
      this.head = Math.max(this.head, tracked.position);
    }
    if (this.positions() === before) return;
    this.stillSince = performance.now();
    this.request.onMoved();
  }

  /** Another process has the lock: is it at work? A hung one must not stop everybody's queries. */
  private async mustStandIn(): Promise<boolean> {
    const { source, ledger, standInAfterMs } = this.request;
    const lowest = Math.min(...this.tracked.map(({ position }) => position));
    if (lowest >= this.head) {
      this.head = Math.max(this.head, await source.head(ledger));
      if (lowest >= this.head) this.stillSince = performance.now();
    }
    return performance.now() - this.stillSince > standInAfterMs;
  }

  /** The common feed. */
  private async feedLive(): Promise<boolean> {
    const live = this.tracked.filter(({ state }) => state === 'live');
    const [first] = live;
    if (!first) return false;
    return this.feed(live, first.position, Number.POSITIVE_INFINITY);
  }

  /** Those that lag, each alone, up to where the others are. */
  private async feedBehind(): Promise<boolean> {
    let worked = false;
    for (const tracked of this.tracked) {
      if (!tracked.isDueAlone(performance.now())) continue;
      const anyLive = this.tracked.some(({ state }) => state === 'live');
      const limit = anyLive ? this.front() : Number.POSITIVE_INFINITY;
      if (tracked.position < limit) worked = (await this.feed([tracked], tracked.position, limit)) || worked;
      if (tracked.state === 'catching-up' && tracked.position >= this.front()) tracked.state = 'live';
    }
    return worked;
  }

  private async feed(group: readonly TrackedModel[], position: number, limit: number): Promise<boolean> {
    const page = await this.page(position, Math.min(this.request.batchSize, limit - position));
    const last = page.at(-1);
    if (!last) {
      for (const tracked of group) if (tracked.state === 'failed') tracked.recovered();
      return false;
    }
    this.head = Math.max(this.head, last.revision);
    let events: readonly Recorded[];
    try {
      events = applicable(page, position);
    } catch (error) {
      for (const tracked of group) this.failed(tracked, error);
      return false;
    }
    return this.apply(group, events);
  }

  private async page(position: number, max: number): Promise<readonly Recorded[]> {
    const { source, ledger } = this.request;
    return source.recent(ledger, position + 1, max) ?? (await source.read(ledger, position + 1, max));
  }

  private async apply(group: readonly TrackedModel[], events: readonly Recorded[]): Promise<boolean> {
    const { connection, ledger } = this.request;
    const targets = group.map(({ target }) => target);
    try {
      const result = await connection.exclusive((sql: Sql) => runStep(sql, { ledger, targets, events }));
      if (result === 'elsewhere') await this.lookAgain(group, events);
      else this.advanced(group, events);
      return true;
    } catch (error) {
      if (error instanceof ConnectionLostError) throw error;
      const [only] = group;
      if (only && group.length === 1) {
        this.failed(only, error);
        return false;
      }
      // One of them is to blame: alone, the others go on.
      for (const each of group) await this.apply([each], events);
      return true;
    }
  }

  private advanced(group: readonly TrackedModel[], events: readonly Recorded[]): void {
    const last = events.at(-1);
    if (!last) return;
    for (const tracked of group) {
      tracked.movedTo(last.revision, last.metadata.hash);
      if (tracked.state === 'failed') tracked.recovered();
    }
    this.request.connection.tell(this.request.ledger);
    this.request.onMoved();
  }

  /** Another process was here, or a rebuild was swapped in; or this is not the log the rows were built from. */
  private async lookAgain(group: readonly TrackedModel[], events: readonly Recorded[]): Promise<void> {
    const before = group.map(({ version, position }) => ({ version, position }));
    await this.refresh();
    for (const [i, tracked] of group.entries()) {
      const was = before[i];
      if (tracked.version !== was?.version || tracked.position !== was.position) continue;
      if (tracked.hash !== events[0]?.metadata.previousHash) {
        const where = `revision ${String(tracked.position)}`;
        this.failed(
          tracked,
          new LogBrokenError(`the log has another hash at ${where}: rebuild the read models`),
        );
      }
    }
  }

  private failed(tracked: TrackedModel, error: unknown): void {
    const before = tracked.error;
    tracked.fail(error, performance.now());
    if (tracked.error === before) return;
    const fields = { ledger: this.request.ledger, model: tracked.model.name, position: tracked.position };
    this.request.log.warn('a read model stopped', { ...fields, error: tracked.error });
  }

  private front(): number {
    const own = this.tracked.filter(({ state }) => state !== 'superseded');
    return Math.max(-1, ...own.map(({ position }) => position));
  }

  private positions(): string {
    return this.tracked.map(({ position }) => position).join();
  }

  /**
   * Lets events gather where nobody waits for them: a transaction of every few milliseconds would cost the database, on
   * a busy ledger, about as much as the log itself.
   */
  private gather(): Promise<void> {
    const isFarBehind = this.head - this.front() > this.request.batchSize / 4;
    if (this.stopped || this.isAwaited || isFarBehind) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.stopGathering = undefined;
        resolve();
      };
      const timer = setTimeout(done, this.request.gatherMs);
      this.stopGathering = done;
    });
  }

  private idle(ms: number, evenIfWoken = false): Promise<void> {
    if (this.stopped || (this.woken && !evenIfWoken)) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.wakeUp = undefined;
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.wakeUp = () => {
        if (!evenIfWoken || this.stopped) done();
      };
    });
  }
}
