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
 * (casebook 34): a hole is an error. What cannot be read is tried again until the signal (casebook 38).
 */
export async function* followStream({
  options,
  read,
  wakeUps,
  pollMs = 1_000,
}: Followed): AsyncGenerator<StoredEvent[]> {
  const { signal, batchSize = 1_000, onState } = options;
  let next = options.from;
  let news = true;
  let pause = FIRST_PAUSE_MS;
  let rouse: (() => void) | undefined;
  const unsubscribe = wakeUps(() => {
    news = true;
    rouse?.();
  });
  const stop = () => rouse?.();
  // Asked as functions, since both change while this generator sleeps.
  const ended = () => signal.aborted;
  const hasNews = () => news;
  signal.addEventListener('abort', stop);
  try {
    onState?.('catching-up');
    while (!ended()) {
      news = false;
      let events: StoredEvent[];
      try {
        events = await read(next, batchSize);
      } catch (error) {
        onState?.('lost', error);
        await after(pause * (0.5 + Math.random()), undefined, { signal }).catch(() => undefined);
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
        continue;
      }
      pause = FIRST_PAUSE_MS;
      assertContiguous(events, next);
      if (events.length > 0 && !ended()) {
        next += events.length;
        yield events;
        continue;
      }
      onState?.('live');
      if (!hasNews()) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, pollMs);
          rouse = () => {
            clearTimeout(timer);
            resolve();
          };
          if (hasNews() || ended()) rouse();
        });
        rouse = undefined;
      }
    }
  } finally {
    unsubscribe();
    signal.removeEventListener('abort', stop);
  }
}

function assertContiguous(events: readonly StoredEvent[], from: number): void {
  events.forEach((event, i) => {
    if (event.revision !== from + i) {
      throw new Error(`the log has a hole: revision ${from + i} is missing, ${event.revision} follows`);
    }
  });
}
