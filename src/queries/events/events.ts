import { Query, QueryHandler } from '@nestjs/cqrs';
import type { IQueryHandler } from '@nestjs/cqrs';
import { EventReader } from './event-reader';
import type { EventFilter, EventPage } from './event-reader';

export class ListEvents extends Query<EventPage> {
  constructor(
    readonly ledger: string,
    readonly filter: EventFilter,
    /** Events after this revision; −1 for all. */
    readonly after: number,
    readonly limit: number,
  ) {
    super();
  }
}

@QueryHandler(ListEvents)
export class ListEventsHandler implements IQueryHandler<ListEvents> {
  constructor(private readonly events: EventReader) {}

  execute({ ledger, filter, after, limit }: ListEvents): Promise<EventPage> {
    return this.events.page(ledger, filter, after, limit);
  }
}
