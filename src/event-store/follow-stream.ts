import { setTimeout as after } from 'node:timers/promises';
import type { StoredEvent, SubscribeOptions } from './event-store';

export interface Followed {
  readonly options: SubscribeOptions;
  readonly read: (from: number, limit: number) => Promise<StoredEvent[]>;
  /** Listens for news of the stream; returns how to stop. */
  readonly wakeUps: (listener: () => void) => () => void;
  /** The net below the wake-ups. */
  readonly pollMs?: number;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Everything from a revision on, page by page, then live. Revisions are contiguous, so nothing can be skipped
 * (casebook 34): a hole is an error (casebook 36). What cannot be read is tried again until the signal (casebook 38).
 */
export async function* followStream({
  options,
  read,
  wakeUps,
  pollMs = 1_000,
}: Followed): AsyncGenerator<StoredEvent[]> {
  const { signal, batchSize = 1_000 } = options;
  const enter = tellingChanges(options.onState);
  const doorbell = new Doorbell(wakeUps, signal);
  // Asked as a function, since it changes while this generator sleeps.
  const aborted = () => signal.aborted;
  let next = options.from;
  let pauseMs = FIRST_PAUSE_MS;
  let isLost = false;
  try {
    enter('catching-up');
    while (!aborted()) {
      doorbell.reset();
      let events: StoredEvent[];
      try {
        events = await read(next, batchSize);
      } catch (error) {
        isLost = true;
        enter('lost', error);
        await after(pauseMs * (0.5 + Math.random()), undefined, { signal }).catch(() => undefined);
        pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
        continue;
      }
      pauseMs = FIRST_PAUSE_MS;
      // Recovered with the first page, not only at the head, which a busy log may keep away for long.
      if (isLost) enter('catching-up');
      isLost = false;
      assertContiguous(events, next);
      if (aborted()) return;
      if (events.length > 0) {
        next += events.length;
        yield events;
        continue;
      }
      enter('live');
      await doorbell.rung(pollMs);
    }
  } finally {
    doorbell.remove();
  }
}

/** Remembers that there was news while nobody waited for it, so that none falls between a read and the wait. */
class Doorbell {
  private hasRung = false;
  private open: (() => void) | undefined;
  private readonly unsubscribe: () => void;

  constructor(
    wakeUps: Followed['wakeUps'],
    private readonly signal: AbortSignal,
  ) {
    this.unsubscribe = wakeUps(this.ring);
    signal.addEventListener('abort', this.ring);
  }

  reset(): void {
    this.hasRung = false;
  }

  /** Resolves with news since the last reset, with the signal, or after `withinMs`. */
  async rung(withinMs: number): Promise<void> {
    if (this.hasRung || this.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, withinMs);
      this.open = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.open = undefined;
  }

  remove(): void {
    this.unsubscribe();
    this.signal.removeEventListener('abort', this.ring);
  }

  private readonly ring = (): void => {
    this.hasRung = true;
    this.open?.();
  };
}

/** Tells of a state when it is entered, not at each look. */
function tellingChanges(onState: SubscribeOptions['onState']): NonNullable<SubscribeOptions['onState']> {
  let last: Parameters<NonNullable<SubscribeOptions['onState']>>[0] | undefined;
  return (state, error) => {
    if (state !== last) onState?.(state, error);
    last = state;
  };
}

function assertContiguous(events: readonly StoredEvent[], from: number): void {
  events.forEach((event, i) => {
    if (event.revision !== from + i) {
      throw new Error(`the log has a hole: revision ${from + i} is missing, ${event.revision} follows`);
    }
  });
}
