import { v7 as uuid } from 'uuid';
import type { Command } from '../domain/commands';
import type { StoredEvent } from '../event-store/event-store';
import { EMPTY } from '../event-store/event-store';
import { Appender } from './appender';
import type { Fate } from './appender';
import type { Batch } from './batch';
import { CommandQueue } from './command-queue';
import { Confirmations } from './confirmations';
import type { ConfirmedListener } from './confirmations';
import { ExpiryTimer } from './expiry-timer';
import { Follower } from './follower';
import { abandon, overloaded, stopping, tooLate, unavailable } from './failures';
import { LogTail } from './log-tail';
import { Openings } from './openings';
import { DEFAULT_OPTIONS, PROCESS_TIMERS, jittered } from './options';
import type { Timers, WriterOptions } from './options';
import { pause } from './pause';
import { Pending, sizeOf } from './pending';
import type { RecentEvents } from './recent-events';
import { Replies } from './replies';
import { Snapshots } from './snapshots';
import { DivergedError, NO_HASH, Speculation } from './speculation';
import type { Confirmed } from './speculation';
import type { CommandOutcome, Origin } from './submission';
import type { WriterCounters, WriterParts } from './writer-parts';

const SWEEP_MS = 250;

/**
 * Decides and stores the commands of one ledger (DESIGN 7). One batch is being stored while the next is decided
 * upon it; no answer leaves before everything it was judged on is durable; whatever goes wrong, both are taken back
 * exactly and decided anew, in their order.
 *
 * `turn` is the only place that decides; `stored`, `lost`, `unavailable` and `refused` follow what became of a batch.
 */
export class LedgerWriter {
  private readonly options: WriterOptions;
  private readonly timers: Timers;
  private readonly queue: CommandQueue;
  private readonly confirmations: Confirmations;
  private readonly replies: Replies;
  private readonly appender: Appender;
  private readonly snapshots: Snapshots;
  private readonly follower: Follower;
  private readonly openings: Openings;
  private readonly expiry: ExpiryTimer;
  private readonly ended = new AbortController();
  private readonly loaded: Promise<void>;

  private speculation: Speculation | undefined;
  private tail: LogTail | undefined;
  /** Being stored; `open` is decided upon it. */
  private inFlight: Batch | undefined;
  private open: Batch | undefined;

  /** Decides commands only while this is 'deciding'. */
  private mode: 'loading' | 'deciding' | 'unknown' | 'repairing' | 'closed' = 'loading';
  private closing = false;
  private turnWaits = false;
  private sweepWaits = false;
  private refreshing = false;
  private yielding = false;

  private conflictsInARow = 0;
  private outagesInARow = 0;
  private appendsInARow = 0;
  private busyAt = performance.now();
  /** Commands of a suspect batch at once. */
  private suspectsAtOnce = 1;
  private onDrained: (() => void) | undefined;
  private appends = 0;
  private appended = 0;
  private conflicts = 0;
  private unknownOutcomes = 0;
  private refusals = 0;

  constructor(
    readonly ledger: string,
    private readonly parts: WriterParts,
  ) {
    const { store, clock, decider, log, storage } = parts;
    this.options = { ...DEFAULT_OPTIONS, ...parts.options };
    this.timers = parts.timers ?? PROCESS_TIMERS;
    const { options, timers } = this;
    this.queue = new CommandQueue(options.maxQueuedCommands, options.maxQueuedBytes);
    this.confirmations = new Confirmations(options.recentEvents, log);
    this.replies = new Replies(ledger, store, this.recent, decider, () => {
      this.checkDrained();
    });
    this.appender = new Appender(ledger, store, clock, timers, log, options, this.ended.signal);
    this.snapshots = new Snapshots(ledger, storage, decider, log, options);
    this.follower = new Follower(
      ledger,
      store,
      (events) => this.adoptIdle(events),
      () => this.confirmed().revision,
      (error) => {
        this.warn('following the log failed', error);
      },
    );
    this.openings = new Openings(ledger, store, this.recent, decider, log, options, {
      confirmedRevision: () => this.confirmed().revision,
      proceed: (pending) => {
        this.queue.putBack([pending]);
      },
      ended: () => {
        this.schedule();
        this.checkDrained();
      },
    });
    this.expiry = new ExpiryTimer(timers, options, {
      isDue: () => this.isSomethingDue(),
      expire: (command) => this.enqueue(command, systemOrigin(), true),
    });
    this.loaded = this.load();
  }

  /** Resolves when the state stands; at the latest when the writer is closed. */
  ready(): Promise<void> {
    return this.loaded;
  }

  /** The last events known to be durable, for feeds. */
  get recent(): RecentEvents {
    return this.confirmations.recent;
  }

  /** What is durable, as far as this process has seen; revision −1 for an empty ledger. */
  confirmed(): Confirmed {
    return this.speculation?.confirmed ?? { revision: EMPTY, hash: NO_HASH, atMs: 0 };
  }

  /** The first events told continue `confirmed()` after `ready()`. Returns how to stop listening. */
  onConfirmed(listener: ConfirmedListener): () => void {
    return this.confirmations.listen(listener);
  }

  /** True once the revision is confirmed in this process, false after the time-out. */
  waitForRevision(revision: number, timeoutMs: number): Promise<boolean> {
    return this.confirmations.waitFor(revision, timeoutMs);
  }

  counters(): WriterCounters {
    const { appends, appended, conflicts, unknownOutcomes, refusals } = this;
    const inFlight = (this.inFlight?.commands.length ?? 0) + (this.open?.commands.length ?? 0);
    return {
      queued: this.queue.size,
      inFlight,
      appends,
      appended,
      conflicts,
      unknownOutcomes,
      refusals,
    };
  }

  /** Milliseconds since it last had anything to do; 0 while it has. */
  idleForMs(): number {
    return this.isIdle() ? performance.now() - this.busyAt : 0;
  }

  /** Whether anything is held whose end this process may have to book. */
  get holdsAnything(): boolean {
    const state = this.speculation?.state;
    return state !== undefined && (state.due.size > 0 || state.repriceable.size > 0);
  }

  /** Throws LogUnavailableError, OverloadedError. */
  submit(command: Command, origin: Origin): Promise<CommandOutcome> {
    if (this.closing) {
      return Promise.reject(stopping());
    }
    const bytes = sizeOf(command);
    if (this.queue.isFullFor(bytes)) {
      return Promise.reject(overloaded(`too many commands wait for ${this.ledger}`));
    }
    return this.enqueue(command, origin, false, bytes);
  }

  /** Takes no more commands, answers those it has, stores what is in flight, and stops. Bounded in time. */
  async close(): Promise<void> {
    if (!this.closing) {
      this.closing = true;
      this.expiry.stop();
      this.follower.stop();
      const drained = new Promise<void>((resolve) => (this.onDrained = resolve));
      this.checkDrained();
      const cancel = this.timers.after(this.options.closeWithinMs, () => this.onDrained?.());
      await drained;
      cancel();
      this.stop();
    }
    await this.loaded;
    await this.snapshots.settled();
  }

  private stop(): void {
    const { speculation, inFlight } = this;
    if (speculation?.isClean && this.snapshots.isWorthwhile(speculation.confirmed.revision)) {
      this.snapshots.take(speculation.state, speculation.confirmed);
    }
    this.mode = 'closed';
    this.ended.abort();
    if (inFlight) for (const pending of inFlight.commands) abandon(pending, inFlight);
    for (const pending of this.open?.commands ?? []) pending.fail(stopping());
    for (const pending of this.openings.pending()) pending.fail(stopping());
    for (let next = this.queue.peek(); next; next = this.queue.peek()) {
      next.fail(stopping());
    }
  }

  private enqueue(
    command: Command,
    origin: Origin,
    alone: boolean,
    bytes = sizeOf(command),
  ): Promise<CommandOutcome> {
    return new Promise((resolve, reject) => {
      this.queue.push(new Pending(command, origin, bytes, performance.now(), alone, resolve, reject));
      this.schedule();
      this.scheduleSweep();
    });
  }

  // ---- deciding

  /** Commands that arrive in one turn of the event loop share a batch. */
  private schedule(): void {
    if (this.turnWaits || this.mode !== 'deciding') return;
    this.turnWaits = true;
    setImmediate(this.runTurn);
  }

  private readonly runTurn = (): void => {
    this.turnWaits = false;
    this.guard(() => {
      this.turn();
    });
  };

  /** Decides what waits, as far as it may, and sends it if nothing else is being stored. */
  private turn(): void {
    const { speculation, options } = this;
    if (!speculation || this.mode !== 'deciding') return;
    if (!this.inFlight && !this.open && this.snapshots.isDue(speculation.confirmed.revision)) {
      this.snapshots.take(speculation.state, speculation.confirmed);
    }
    let left = options.sliceCommands;
    while (left > 0 && this.decideNext(speculation)) left -= 1;
    const sent = this.sendOpen();
    if ((sent || left === 0) && this.queue.size > 0 && this.canDecide()) this.schedule();
    this.checkDrained();
  }

  private canDecide(): boolean {
    if (this.mode !== 'deciding' || this.refreshing || this.open?.closed) return false;
    // A snapshot needs a moment in which nothing is in flight; a suspect batch goes alone.
    if (!this.inFlight) return true;
    return !this.inFlight.suspect && !this.snapshots.isDue(this.confirmed().revision);
  }

  /** False when the next command must wait. */
  private decideNext(speculation: Speculation): boolean {
    const pending = this.queue.peek();
    if (!pending || !this.canDecide()) return false;
    if (pending.opening && !this.isOpeningExact(pending, pending.opening)) return false;
    const batch = (this.open ??= this.begin(speculation, pending));
    if (!batch) return false;
    if (!batch.admits(pending, pending.suspect ? this.suspectsAtOnce : this.options.maxBatchCommands)) {
      batch.closed = true;
      return false;
    }
    const verdict = speculation.judge(batch, pending, this.options.maxBatchBytes);
    if (verdict.kind === 'full') {
      batch.closed = true;
      return false;
    }
    this.queue.shift();
    if (verdict.kind === 'needs-opening') this.openings.begin(pending, verdict.fromMs, batch, speculation);
    if (batch.commands.length === 0) this.discard(speculation, batch);
    return true;
  }

  private begin(speculation: Speculation, first: Pending): Batch | undefined {
    const { clock } = this.parts;
    if (!clock.isFresh()) {
      this.refreshClock();
      return undefined;
    }
    return speculation.begin(clock.now(), this.options.maxSkewMs, first);
  }

  private discard(speculation: Speculation, batch: Batch): void {
    speculation.undo(batch);
    this.open = undefined;
  }

  /** After a pause of the process or machine the clock is asked before anything is decided (RULES 1). */
  private refreshClock(): void {
    if (this.refreshing) return;
    this.refreshing = true;
    this.parts.clock
      .refresh()
      .catch(async (error: unknown) => {
        this.warn('the clock cannot be read', error);
        await this.pause(jittered(4, this.options.outagePauseMs, this.options.outagePauseCapMs));
      })
      .finally(() => {
        this.refreshing = false;
        this.schedule();
      });
  }

  // ---- sending

  /** True when the open batch left and another can be begun. */
  private sendOpen(): boolean {
    const { open, speculation } = this;
    if (!open || !speculation || this.inFlight || this.yielding || this.mode !== 'deciding') return false;
    this.open = undefined;
    if (open.events.length > 0) {
      this.inFlight = open;
      open.sentAt = performance.now();
      void this.store(open);
      return true;
    }
    // Nothing to record: it was only speculation about time.
    speculation.undo(open);
    const provenAt = this.tail?.provenAt ?? Number.NEGATIVE_INFINITY;
    if (open.commands.every(({ since }) => since <= provenAt)) {
      this.busyAt = performance.now();
      this.replies.deliver(open.commands);
      return true;
    }
    this.inFlight = open;
    void this.verify(open);
    return true;
  }

  private async store(batch: Batch): Promise<void> {
    const fate = await this.appender.append(batch, () => {
      this.suspend();
    });
    this.guard(() => {
      this.settle(batch, fate);
    });
  }

  /**
   * An answer without events proves nothing by an append: another process may have written meanwhile what it was
   * not judged on. It leaves if the log ended here at a moment after it was asked.
   */
  private async verify(batch: Batch): Promise<void> {
    const sentAt = performance.now();
    let fate: Fate;
    try {
      fate = (await this.tail?.isAtEnd()) === true ? { kind: 'stored' } : { kind: 'lost' };
      batch.sentAt = sentAt;
    } catch (error) {
      if (error instanceof DivergedError && this.mode === 'deciding') return this.reload(error);
      fate = {
        kind: 'unavailable',
        error: error instanceof Error ? error : new Error(String(error)),
      };
    }
    this.guard(() => {
      this.settle(batch, fate);
    });
  }

  private settle(batch: Batch, fate: Fate): void {
    // A reload has given it up meanwhile; what it stored will be read from the log.
    if (this.mode === 'closed' || this.inFlight !== batch) return;
    if (this.mode === 'unknown') this.mode = 'deciding';
    switch (fate.kind) {
      case 'stored': {
        this.stored(batch);
        return;
      }
      case 'lost': {
        this.lost(batch);
        return;
      }
      case 'unavailable': {
        this.unavailable(batch, fate.error);
        return;
      }
      case 'refused': {
        this.refused(batch, fate.error);
        return;
      }
      case 'unknown':
        return;
    }
  }

  private stored(batch: Batch): void {
    const { speculation } = this;
    if (!speculation) return;
    speculation.confirm(batch, this.open);
    this.inFlight = undefined;
    if (this.tail) this.tail.provenAt = batch.sentAt;
    this.conflictsInARow = 0;
    this.outagesInARow = 0;
    this.busyAt = performance.now();
    if (batch.events.length > 0) {
      this.appends += 1;
      this.appended += batch.events.length;
      this.yieldToRival();
      // The next append first: it runs while answers leave and read models are fed.
      this.sendOpen();
      this.parts.store.wake(this.ledger);
      this.confirmations.tell(batch.recorded);
    }
    this.replies.deliver(batch.commands);
    if (this.open || this.queue.size > 0) this.schedule();
    this.checkDrained();
  }

  /**
   * A process that always has the next batch ready never lets another one in. So while another one is known to
   * write, it leaves a gap now and then.
   */
  private yieldToRival(): void {
    this.appendsInARow += 1;
    if (this.appendsInARow < this.options.appendsBeforeYield) return;
    this.appendsInARow = 0;
    if (performance.now() - (this.tail?.rivalSeenAt ?? -Infinity) > this.options.rivalRememberedMs) return;
    this.yielding = true;
    this.timers.after(jittered(2, this.options.conflictPauseMs, this.options.conflictPauseCapMs), () => {
      this.yielding = false;
      this.schedule();
    });
  }

  // ---- when it did not work

  /** Takes back all speculation; its commands stand in front of the queue again, in their order. */
  private takeBack(): void {
    const again = [...(this.inFlight?.commands ?? []), ...(this.open?.commands ?? [])];
    this.speculation?.undoAll();
    this.inFlight = undefined;
    this.open = undefined;
    this.queue.putBack(again.filter(({ settled }) => !settled));
  }

  /** Nobody knows what became of the batch in flight: what was decided upon it is taken back, and waits. */
  private suspend(): void {
    this.unknownOutcomes += 1;
    this.mode = 'unknown';
    const { open } = this;
    if (!open) return;
    this.speculation?.undo(open);
    this.open = undefined;
    this.queue.putBack(open.commands.filter(({ settled }) => !settled));
  }

  private lost(batch: Batch): void {
    this.conflicts += 1;
    for (const pending of batch.commands) {
      pending.conflicts += 1;
      if (pending.conflicts <= this.options.maxConflicts) continue;
      pending.fail(overloaded(`others write ${this.ledger} all the time`));
    }
    this.takeBack();
    const { conflictPauseMs, conflictPauseCapMs } = this.options;
    // The first time at once: mostly it was one event of somebody else's.
    const waitMs =
      this.conflictsInARow === 0 ? 0 : jittered(this.conflictsInARow, conflictPauseMs, conflictPauseCapMs);
    this.conflictsInARow += 1;
    void this.repair(waitMs, true);
  }

  private unavailable(batch: Batch, error: Error): void {
    this.warn('the log cannot be written', error);
    for (const pending of batch.commands) pending.fail(unavailable('the log cannot be written'));
    this.takeBack();
    this.outagesInARow += 1;
    const { outagePauseMs, outagePauseCapMs } = this.options;
    void this.repair(jittered(this.outagesInARow, outagePauseMs, outagePauseCapMs), false);
  }

  /** Halves the batch until the command is found that the log does not take. */
  private refused(batch: Batch, error: Error): void {
    this.refusals += 1;
    const { commands } = batch;
    if (commands.length === 1) {
      this.warn('the log refuses a command', error);
      commands[0]?.fail(unavailable('the log refuses this command'));
      this.suspectsAtOnce = this.options.maxBatchCommands;
    } else {
      for (const pending of commands) pending.suspect = true;
      this.suspectsAtOnce = Math.ceil(commands.length / 2);
    }
    this.takeBack();
    this.schedule();
  }

  private async repair(waitMs: number, catchUp: boolean): Promise<void> {
    this.mode = 'repairing';
    if (waitMs > 0) await this.pause(waitMs);
    while (catchUp && !this.ended.signal.aborted) {
      try {
        await this.tail?.catchUp();
        break;
      } catch (error) {
        if (error instanceof DivergedError) return this.reload(error);
        this.warn('the log cannot be read', error);
        this.outagesInARow += 1;
        const { outagePauseMs, outagePauseCapMs } = this.options;
        await this.pause(jittered(this.outagesInARow, outagePauseMs, outagePauseCapMs));
      }
    }
    if (this.ended.signal.aborted) return;
    this.mode = 'deciding';
    this.runTurn();
  }

  /** Events of others while nothing is going on here. False: something is. */
  private adoptIdle(events: readonly StoredEvent[]): boolean {
    if (this.mode !== 'deciding' || !this.isIdle()) return false;
    try {
      this.tail?.adopt(events);
    } catch (error) {
      this.mode = 'repairing';
      void this.reload(error);
    }
    return true;
  }

  // ---- openings

  /** A budget is judged on a fold that is exact to the revision: nothing may be in flight. */
  private isOpeningExact(pending: Pending, opening: NonNullable<Pending['opening']>): boolean {
    if (this.inFlight) return false;
    if (this.open) {
      this.open.closed = true;
      return false;
    }
    if (this.openings.finish(pending, opening)) return true;
    this.queue.shift();
    return false;
  }

  // ---- waiting callers

  private scheduleSweep(): void {
    if (this.sweepWaits) return;
    this.sweepWaits = true;
    this.timers.background(SWEEP_MS, () => {
      this.sweepWaits = false;
      this.guard(() => {
        this.sweep();
      });
    });
  }

  /** Tells callers that have waited too long; follows the log when there is nothing else to do. */
  private sweep(): void {
    if (this.mode === 'closed') return;
    const overdue = performance.now() - this.options.answerWithinMs;
    const { inFlight, open } = this;
    for (const pending of inFlight?.commands ?? []) {
      if (inFlight && pending.since < overdue) abandon(pending, inFlight);
    }
    for (const pending of this.openings.pending()) if (pending.since < overdue) pending.fail(tooLate());
    if (open?.commands.some(({ since }) => since < overdue)) {
      // Decided but not sent: with it go those decided upon it, which stay in the queue.
      this.speculation?.undo(open);
      this.open = undefined;
      this.queue.putBack(open.commands);
    }
    for (let next = this.queue.peek(); next && next.since < overdue; next = this.queue.peek()) {
      next.fail(tooLate());
    }
    this.followWhenIdle();
    this.schedule();
    this.checkDrained();
  }

  private followWhenIdle(): void {
    const { followAfterIdleMs } = this.options;
    if (this.isIdle() && (this.closing || followAfterIdleMs === Infinity)) return;
    if (this.mode === 'deciding' && this.isIdle() && this.idleForMs() >= followAfterIdleMs) {
      this.follower.start();
      return;
    }
    this.scheduleSweep();
  }

  private isIdle(): boolean {
    return this.queue.size === 0 && !this.inFlight && !this.open && this.openings.size === 0;
  }

  private checkDrained(): void {
    if (this.closing && this.isIdle() && this.replies.open === 0) this.onDrained?.();
  }

  // ---- time, loading

  private isSomethingDue(): boolean {
    const { clock, decider } = this.parts;
    if (this.mode !== 'deciding' || this.closing || !this.speculation || !clock.isFresh()) return false;
    return decider.dueBefore(this.speculation.state, clock.now()) > 0;
  }

  private async load(): Promise<void> {
    for (let attempt = 0; !this.ended.signal.aborted; attempt += 1) {
      try {
        await this.restore();
        break;
      } catch (error) {
        this.warn('a ledger cannot be loaded', error);
        const { outagePauseMs, outagePauseCapMs } = this.options;
        await this.pause(jittered(attempt, outagePauseMs, outagePauseCapMs));
      }
    }
    if (this.ended.signal.aborted) return;
    this.mode = 'deciding';
    this.expiry.start();
    this.schedule();
    this.scheduleSweep();
    this.checkDrained();
  }

  private async restore(): Promise<void> {
    const { store, clock, catalogue, decider } = this.parts;
    if (!clock.isFresh()) await clock.refresh();
    const restored = await this.snapshots.load(store);
    const state = restored?.state ?? decider.initialState(this.ledger);
    const confirmed = restored?.confirmed ?? {
      revision: EMPTY,
      hash: NO_HASH,
      atMs: 0,
    };
    const speculation = new Speculation(this.ledger, state, confirmed, decider, catalogue);
    const { confirmations, options } = this;
    const tail = new LogTail(this.ledger, speculation, store, decider, confirmations, options.pageEvents);
    this.speculation = speculation;
    this.tail = tail;
    confirmations.begin(confirmed.revision);
    await tail.load();
  }

  /** The log is not what this process knew it to be: what it knows is worth nothing. */
  private async reload(error: unknown): Promise<void> {
    this.warn('what is known of a ledger does not fit its log; loading it anew', error);
    this.mode = 'loading';
    this.follower.stop();
    const { inFlight } = this;
    // Its fate is unknown: what it stored will be read from the log, what it did not must not happen later.
    if (inFlight) for (const pending of inFlight.commands) abandon(pending, inFlight);
    this.takeBack();
    this.openings.startOver();
    await this.pause(jittered(3, this.options.outagePauseMs, this.options.outagePauseCapMs));
    await this.load();
  }

  /** Nothing that goes wrong here may leave callers waiting or speculation standing. */
  private guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (this.mode === 'closed') return;
      if (this.mode === 'loading') this.warn('a ledger that is being loaded failed', error);
      else void this.reload(error);
    }
  }

  private pause(ms: number): Promise<void> {
    return pause(ms, this.timers, this.ended.signal);
  }

  private warn(message: string, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.parts.log.warn(message, { ledger: this.ledger, reason });
  }
}

/** The writer's own commands. */
function systemOrigin(): Origin {
  const id = uuid();
  return { actor: 'system', correlationId: id, causationId: id };
}
