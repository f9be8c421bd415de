import { Injectable } from '@nestjs/common';
import type { EventType, LedgerEvent } from '../../domain/events';
import { decodeEvent } from '../../domain/upcast';
import type { StoredEvent } from '../../event-store/event-store';
import { LedgerReads, positionAhead } from '../ledger-reads';
import type { ModelName } from '../ledger-reads';
import { runsOf } from './runs';

export interface EventFilter {
  readonly type?: EventType;
  readonly requestId?: string;
  readonly conversation?: string;
  /** ms since epoch, inclusive. */
  readonly fromMs?: number;
  /** ms since epoch, exclusive. */
  readonly toMs?: number;
}

export interface EventPage {
  readonly events: readonly StoredEvent[];
  /** Revision of the last event here, where there are more. */
  readonly next?: number;
}

/** In order, none of them empty. */
export type Batches = AsyncGenerator<readonly StoredEvent[]>;

/** Events read at once. */
const PAGE_EVENTS = 500;
/** Entries of the index read at once. */
const PAGE_PLACES = 500;
const PAGE_SEGMENTS = 20;

const isOfAttempts = ({ requestId, conversation }: EventFilter): boolean =>
  requestId !== undefined || conversation !== undefined;

/** Which index answers a filter; none: the log alone. */
function indexesOf(filter: EventFilter): ModelName[] {
  if (isOfAttempts(filter)) return ['spend'];
  return filter.type === undefined ? [] : ['event-index'];
}

/** History as it is stored: exact bytes, selected by filters, oldest first. */
@Injectable()
export class EventReader {
  constructor(private readonly reads: LedgerReads) {}

  /** One page after a revision. What is in the log when it is asked for is in it: the index is waited for. */
  async page(ledger: string, filter: EventFilter, after: number, limit: number): Promise<EventPage> {
    const head = await this.ready(ledger, filter);
    const events: StoredEvent[] = [];
    for await (const page of this.matching(ledger, filter, after, head, limit + 1)) {
      events.push(...page);
      if (events.length > limit) break;
    }
    const shown = events.slice(0, limit);
    const last = shown.at(-1);
    return events.length > limit && last ? { events: shown, next: last.revision } : { events: shown };
  }

  /** Everything after a revision up to the head of now. Its pace is the consumer's. */
  async all(ledger: string, filter: EventFilter, after: number): Promise<Batches> {
    const head = await this.ready(ledger, filter);
    return this.matching(ledger, filter, after, head, PAGE_EVENTS);
  }

  /**
   * Everything after a revision, then live, without gap or duplicate, until the signal or `toMs`. Throws position_ahead
   * where the log does not reach the revision: what was seen there is gone.
   */
  async follow(ledger: string, filter: EventFilter, after: number, signal: AbortSignal): Promise<Batches> {
    const head = await this.ready(ledger, filter);
    if (after > head) throw positionAhead(after, head);
    return this.following(ledger, filter, after, head, signal);
  }

  private async *following(
    ledger: string,
    filter: EventFilter,
    after: number,
    head: number,
    signal: AbortSignal,
  ): Batches {
    const { store } = this.reads.services;
    let from = after + 1;
    if (indexesOf(filter).length > 0) {
      yield* this.matching(ledger, filter, after, head, PAGE_EVENTS);
      from = head + 1;
    } else if (filter.fromMs !== undefined) {
      from = Math.max(from, await store.revisionAt(ledger, filter.fromMs));
    }
    for await (const batch of store.subscribe(ledger, { from, signal, batchSize: PAGE_EVENTS })) {
      const matching = await this.ofBatch(ledger, filter, batch, signal);
      if (matching.length > 0) yield matching;
      if ((batch.at(-1)?.at ?? 0) >= (filter.toMs ?? Infinity)) return;
    }
  }

  /** The head, once the index the filter needs has seen it. */
  private async ready(ledger: string, filter: EventFilter): Promise<number> {
    await this.reads.mustExist(ledger);
    const head = await this.reads.head(ledger);
    const models = indexesOf(filter);
    if (models.length > 0) await this.reads.seen(ledger, models, head);
    return head;
  }

  private async *matching(
    ledger: string,
    filter: EventFilter,
    after: number,
    head: number,
    atOnce: number,
  ): Batches {
    const { store } = this.reads.services;
    const { fromMs, toMs } = filter;
    const first = fromMs === undefined ? 0 : await store.revisionAt(ledger, fromMs);
    const end = toMs === undefined ? head : Math.min(head, (await store.revisionAt(ledger, toMs)) - 1);
    const start = Math.max(after + 1, first);
    if (isOfAttempts(filter)) yield* this.ofAttempts(ledger, filter, start, end);
    else if (filter.type !== undefined) yield* this.ofType(ledger, filter.type, start, end);
    else yield* this.between(ledger, start, end, Math.min(atOnce, PAGE_EVENTS));
  }

  private async *between(ledger: string, from: number, to: number, size = PAGE_EVENTS): Batches {
    let next = from;
    while (next <= to) {
      const limit = Math.min(size, to - next + 1);
      const page = await this.reads.services.store.read(ledger, { from: next, limit });
      if (page.length === 0) return;
      yield page;
      next += page.length;
    }
  }

  private async *ofType(ledger: string, type: EventType, start: number, end: number): Batches {
    let after = start - 1;
    for (;;) {
      const places = await this.reads.events.places(ledger, { type }, after, PAGE_SEGMENTS);
      if (places.kind !== 'ranges') return;
      for (const { from, to } of places.ranges) {
        for await (const page of this.between(ledger, from, Math.min(to, end))) {
          const matching = page.filter((event) => event.type === type);
          if (matching.length > 0) yield matching;
        }
        after = to;
      }
      if (!places.more || after >= end) return;
    }
  }

  private async *ofAttempts(ledger: string, filter: EventFilter, start: number, end: number): Batches {
    const { requestId, conversation, type } = filter;
    let after = start - 1;
    for (;;) {
      const places = await this.reads.events.places(ledger, { requestId, conversation }, after, PAGE_PLACES);
      if (places.kind !== 'exact') return;
      const wanted = new Set(places.revisions.filter((revision) => revision <= end));
      for (const { from, to } of runsOf([...wanted])) {
        for await (const page of this.between(ledger, from, to)) {
          const matching = page.filter(
            (event) => wanted.has(event.revision) && (type === undefined || event.type === type),
          );
          if (matching.length > 0) yield matching;
        }
      }
      after = places.revisions.at(-1) ?? end;
      if (!places.more || after >= end) return;
    }
  }

  /** What of a live batch matches. Which attempt an alert or an end belongs to, only the index knows. */
  private async ofBatch(
    ledger: string,
    filter: EventFilter,
    batch: readonly StoredEvent[],
    signal: AbortSignal,
  ): Promise<readonly StoredEvent[]> {
    const { type, fromMs = 0, toMs = Infinity } = filter;
    const candidates = batch.filter(
      (event) => (type === undefined || event.type === type) && event.at >= fromMs && event.at < toMs,
    );
    const [first] = candidates;
    const last = candidates.at(-1);
    if (!isOfAttempts(filter) || !first || !last) return candidates;
    const indexed = await this.indexed(ledger, filter, first.revision, last.revision, signal);
    return candidates.filter(
      (event) => indexed.has(event.revision) || namesAttempt(decodeEvent(event.bytes), filter),
    );
  }

  private async indexed(
    ledger: string,
    { requestId, conversation }: EventFilter,
    from: number,
    to: number,
    signal: AbortSignal,
  ): Promise<Set<number>> {
    const { projection } = this.reads.services;
    while ((await projection.waitFor(ledger, to, 1_000, ['spend'])) === 'behind') {
      if (signal.aborted) return new Set();
    }
    // At most as many as the batch has events: each revision of the range once.
    const size = to - from + 1;
    const places = await this.reads.events.places(ledger, { requestId, conversation }, from - 1, size);
    return new Set(places.kind === 'exact' ? places.revisions : []);
  }
}

/** Whether the event itself says whose it is: a check's estimate is indexed only with the decision that follows it. */
function namesAttempt({ data }: LedgerEvent, { requestId, conversation }: EventFilter): boolean {
  const named = data as { readonly requestId?: string; readonly conversation?: string };
  return (
    (requestId === undefined || named.requestId === requestId) &&
    (conversation === undefined || named.conversation === conversation)
  );
}
