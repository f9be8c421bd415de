import type { EventType, Recorded } from '../domain/events';
import { decodeEvent } from '../domain/upcast';
import type { StoredEvent } from '../event-store/event-store';
import { EventQueries } from '../read-models/event-index/event-queries';
import type { ReadServices } from './read-services';

export interface EventFilter {
  readonly type?: EventType;
  readonly requestId?: string;
  readonly conversation?: string;
  readonly fromMs?: number;
  readonly toMs?: number;
}

export interface EventPage {
  readonly events: readonly StoredEvent[];
  /** The revision to go on after; absent at the end. */
  readonly next?: number;
}

const isFiltered = (filter: EventFilter): boolean =>
  Object.values(filter).some((value) => value !== undefined);

/** One page of history after a revision. Filters are answered from the read model's index. */
export async function eventsAfter(
  services: ReadServices,
  ledger: string,
  filter: EventFilter,
  after: number,
  limit: number,
): Promise<EventPage> {
  if (!isFiltered(filter)) {
    const events = await services.store.read(ledger, { from: after + 1, limit: limit + 1 });
    return {
      events: events.slice(0, limit),
      next: events.length > limit ? events[limit - 1]?.revision : undefined,
    };
  }
  const places = await new EventQueries(services.pool).places(ledger, filter, after, limit);
  return places.kind === 'exact'
    ? exactly(services, ledger, filter, places.revisions, places.more)
    : within(services, ledger, filter, places.ranges, places.more, after, limit);
}

async function exactly(
  { store }: ReadServices,
  ledger: string,
  filter: EventFilter,
  revisions: readonly number[],
  more: boolean,
): Promise<EventPage> {
  const events: StoredEvent[] = [];
  for (const revision of revisions) {
    const [event] = await store.read(ledger, { from: revision, limit: 1 });
    if (event?.revision === revision && matchesTime(event, filter)) events.push(event);
  }
  return { events, next: more ? revisions.at(-1) : undefined };
}

async function within(
  { store }: ReadServices,
  ledger: string,
  filter: EventFilter,
  ranges: readonly { readonly from: number; readonly to: number }[],
  more: boolean,
  after: number,
  limit: number,
): Promise<EventPage> {
  const found: StoredEvent[] = [];
  for (const range of ranges) {
    const from = Math.max(range.from, after + 1);
    if (from > range.to) continue;
    for (const event of await store.read(ledger, { from, limit: range.to + 1 - from })) {
      if (!matchesTime(event, filter)) continue;
      if (found.length === limit) return { events: found, next: found.at(-1)?.revision };
      found.push(event);
    }
  }
  return { events: found, next: more ? ranges.at(-1)?.to : undefined };
}

/** Type and time stand beside the bytes; everything else the index has matched already. */
export const matchesTime = (event: StoredEvent, { type, fromMs, toMs }: EventFilter): boolean =>
  (type === undefined || event.type === type) &&
  (fromMs === undefined || event.at >= fromMs) &&
  (toMs === undefined || event.at < toMs);

/** For live feeds, where no index has seen the event yet. */
export function matchesFilter(event: StoredEvent, filter: EventFilter): boolean {
  if (!matchesTime(event, filter)) return false;
  if (filter.requestId === undefined && filter.conversation === undefined) return true;
  const data = decodeEvent(event.bytes).data as Partial<Record<'requestId' | 'conversation', unknown>>;
  return (
    (filter.requestId === undefined || data.requestId === filter.requestId) &&
    (filter.conversation === undefined || data.conversation === filter.conversation)
  );
}

/** The envelope as it is stored. */
export const envelope = (event: StoredEvent): Recorded =>
  JSON.parse(event.bytes.toString('utf8')) as Recorded;
