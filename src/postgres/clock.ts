/** A monotonic time in ms, from an arbitrary start. */
export type Monotonic = () => number;

export interface ClockSources {
  /** Asks PostgreSQL for its time, ms since epoch. */
  readonly readStoreTime: () => Promise<number>;
  readonly monotonic?: Monotonic;
  /** Only ever compared with itself, to notice that the machine slept. */
  readonly wallTime?: () => number;
  readonly onRefreshFailed?: (error: unknown) => void;
}

/** Older observations than this do not decide about money. */
const FRESH_FOR_MS = 5_000;
/** The monotonic clock stands still while a machine sleeps, the wall clock does not. */
const SLEEP_NOTICED_MS = 1_000;
const REFRESH_EVERY_MS = 1_000;
const MAX_ROUND_TRIP_MS = 1_000;
const MAX_QUESTIONS = 3;

interface Observation {
  readonly storeTime: number;
  readonly monotonic: number;
  readonly wall: number;
}

/**
 * The ledger's time (RULES 1): PostgreSQL's clock as last seen, plus monotonic time elapsed since. The wall clock of
 * a process never decides: a machine a day ahead must not be able to end every window.
 */
export class DatabaseClock {
  readonly #sources: Required<ClockSources>;
  #last: Observation | undefined;
  #latestTold = Number.NEGATIVE_INFINITY;
  #refreshing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(sources: ClockSources) {
    this.#sources = {
      monotonic: () => performance.now(),
      wallTime: () => Date.now(),
      onRefreshFailed: () => undefined,
      ...sources,
    };
  }

  /** Whole ms since epoch; never less than it told before. Throws before the first observation. */
  now(): number {
    if (this.#last === undefined) throw new Error('the clock was not read yet: await refresh() first');
    const elapsed = Math.max(0, this.#sources.monotonic() - this.#last.monotonic);
    this.#latestTold = Math.max(this.#latestTold, Math.floor(this.#last.storeTime + elapsed));
    return this.#latestTold;
  }

  /** Whether the last observation is recent enough to decide on: false after a pause of the process or machine. */
  isFresh(): boolean {
    if (this.#last === undefined) return false;
    const elapsed = this.#sources.monotonic() - this.#last.monotonic;
    const slept = this.#sources.wallTime() - this.#last.wall - elapsed;
    return elapsed <= FRESH_FOR_MS && Math.abs(slept) <= SLEEP_NOTICED_MS;
  }

  /**
   * Takes a time that PostgreSQL told with an answer: when its question was sent and when the answer was received. The
   * clock then lags by at most that round trip. A round trip too long to tell anything is dropped (the process may have
   * been paused with the answer waiting in its socket), and so is one older than the last.
   */
  observe(storeTimeMs: number, sentAt: number, receivedAt: number = this.#sources.monotonic()): void {
    if (receivedAt - sentAt > MAX_ROUND_TRIP_MS) return;
    if (this.#last !== undefined && receivedAt < this.#last.monotonic) return;
    const since = this.#sources.monotonic() - receivedAt;
    this.#last = { storeTime: storeTimeMs, monotonic: receivedAt, wall: this.#sources.wallTime() - since };
  }

  /** Asks PostgreSQL; callers at the same time share one question. Rejects where it does not answer. */
  async refresh(): Promise<void> {
    this.#refreshing ??= this.#ask().finally(() => {
      this.#refreshing = undefined;
    });
    await this.#refreshing;
  }

  /** Refreshes every second, until `stop`. Does not keep the process alive. */
  start(): void {
    this.#timer ??= setInterval(() => {
      this.refresh().catch(this.#sources.onRefreshFailed);
    }, REFRESH_EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #ask(): Promise<void> {
    for (let attempt = 1; attempt <= MAX_QUESTIONS; attempt += 1) {
      const [sentAt, wallThen] = [this.#sources.monotonic(), this.#sources.wallTime()];
      const storeTime = await this.#sources.readStoreTime();
      const receivedAt = this.#sources.monotonic();
      const tookByWall = Math.abs(this.#sources.wallTime() - wallThen);
      if (receivedAt - sentAt <= MAX_ROUND_TRIP_MS && tookByWall <= MAX_ROUND_TRIP_MS + SLEEP_NOTICED_MS) {
        this.observe(storeTime, sentAt, receivedAt);
        return;
      }
    }
    throw new Error(`PostgreSQL took longer than ${String(MAX_ROUND_TRIP_MS)} ms to tell its time`);
  }
}
