import type { EventStore, StoredEvent } from '../../event-store/event-store';

/** The log as history reads it. */
export type LogPages = Pick<EventStore, 'read'>;

const PAGE_EVENTS = 1_000;

/** Page by page up to a revision, inclusive, so that memory stays bounded. Ends early where the log does. */
export async function* pagesOf(
  log: LogPages,
  ledger: string,
  from: number,
  to: number,
): AsyncGenerator<readonly StoredEvent[]> {
  let next = from;
  while (next <= to) {
    const page = await log.read(ledger, { from: next, limit: Math.min(PAGE_EVENTS, to - next + 1) });
    const last = page.at(-1);
    if (!last) return;
    yield page;
    next = last.revision + 1;
  }
}
