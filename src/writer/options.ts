/** Where the writer tells what it did; a pino logger behind an adapter. */
export interface WriterLog {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
}

/** The store's time (RULES 1); `postgres/clock.ts` fits. */
export interface LedgerClock {
  /** Whole ms since epoch, never less than told before. */
  now(): number;
  /** Whether it was compared with the store recently enough to decide about money. */
  isFresh(): boolean;
  refresh(): Promise<void>;
  /** A time the store told with an answer whose question was sent at `sentAt` (monotonic ms). */
  observe(storeTimeMs: number, sentAt: number): void;
}

/** Delays as the writer asks for them; a test hands in its own. Each returns how to call it off. */
export interface Timers {
  after(ms: number, run: () => void): () => void;
  /** The same, but does not keep the process alive. */
  background(ms: number, run: () => void): () => void;
}

export const PROCESS_TIMERS: Timers = {
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => {
      clearTimeout(timer);
    };
  },
  background(ms, run) {
    const timer = setTimeout(run, ms).unref();
    return () => {
      clearTimeout(timer);
    };
  },
};

/** Bounds and paces of one ledger's writer. Times in milliseconds. */
export interface WriterOptions {
  readonly maxQueuedCommands: number;
  readonly maxQueuedBytes: number;
  readonly maxBatchCommands: number;
  /** Below KurrentDB's limit of 1 MiB an append. */
  readonly maxBatchBytes: number;
  /** Commands decided before the event loop gets a turn. */
  readonly sliceCommands: number;
  /** A caller waits no longer: what was not sent by then is never executed. */
  readonly answerWithinMs: number;
  /** Conflicts in a row before a command is given up. */
  readonly maxConflicts: number;
  readonly conflictPauseMs: number;
  readonly conflictPauseCapMs: number;
  readonly outagePauseMs: number;
  readonly outagePauseCapMs: number;
  /** While another process writes the same ledger, a pause is left after this many appends in a row. */
  readonly appendsBeforeYield: number;
  readonly rivalRememberedMs: number;
  /** Folding history for a budget's opening may take this long (RULES 3). */
  readonly openingLimitMs: number;
  readonly expiryEveryMs: number;
  readonly expiryLimit: number;
  /** Predecessors further ahead of the clock than this let no check pass. */
  readonly maxSkewMs: number;
  readonly recentEvents: number;
  readonly pageEvents: number;
  readonly snapshotEvents: number;
  readonly snapshotAfterMs: number;
  readonly snapshotMinEvents: number;
  /** An idle writer follows what others write after this long; Infinity: never. */
  readonly followAfterIdleMs: number;
  readonly closeWithinMs: number;
}

export const DEFAULT_OPTIONS: WriterOptions = {
  maxQueuedCommands: 10_000,
  maxQueuedBytes: 64 * 1024 * 1024,
  maxBatchCommands: 512,
  maxBatchBytes: 900_000,
  sliceCommands: 128,
  answerWithinMs: 5_000,
  maxConflicts: 24,
  conflictPauseMs: 2,
  conflictPauseCapMs: 100,
  outagePauseMs: 50,
  outagePauseCapMs: 2_000,
  appendsBeforeYield: 16,
  rivalRememberedMs: 5_000,
  openingLimitMs: 2_000,
  expiryEveryMs: 1_000,
  expiryLimit: 256,
  maxSkewMs: 5_000,
  recentEvents: 8_192,
  pageEvents: 500,
  snapshotEvents: 50_000,
  snapshotAfterMs: 30_000,
  snapshotMinEvents: 1_000,
  followAfterIdleMs: 250,
  closeWithinMs: 10_000,
};

/** Full jitter: processes that collided must not collide again in step. */
export function jittered(attempt: number, baseMs: number, capMs: number): number {
  return Math.random() * Math.min(capMs, baseMs * 2 ** Math.min(attempt, 16));
}
