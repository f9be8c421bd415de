import { Readable } from 'node:stream';
import { Controller, Get, Inject, Param, Query, Req, Res } from '@nestjs/common';
import { QueryBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { EventReader } from '../../queries/events/event-reader';
import type { EventFilter } from '../../queries/events/event-reader';
import { ListEvents } from '../../queries/events/events';
import { parsed } from '../problems/problem';
import { atMost, jsonPage, ndjson, serverSentEvents } from './event-streams';
import { OpenStreams } from './open-streams';
import * as schemas from './query-schemas';

export { OpenStreams } from './open-streams';

const DEFAULT_LIMIT = 100;

interface Asked {
  readonly ledger: string;
  readonly filter: EventFilter;
  readonly after: number;
  readonly limit: number | undefined;
}

/** History: a page as JSON, all of it as NDJSON, or live as server-sent events. */
@Controller('v1/ledgers/:ledger/events')
export class EventsController {
  constructor(
    @Inject(QueryBus) private readonly bus: QueryBus,
    @Inject(EventReader) private readonly events: EventReader,
    @Inject(OpenStreams) private readonly streams: OpenStreams,
  ) {}

  @Get()
  async list(
    @Param('ledger') ledger: string,
    @Query() query: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { after = -1, limit, from, to, type, requestId, conversation } = parsed(schemas.events, query);
    const filter: EventFilter = {
      type,
      requestId,
      conversation,
      fromMs: from === undefined ? undefined : Date.parse(from),
      toMs: to === undefined ? undefined : Date.parse(to),
    };
    const accept = request.headers.accept ?? '';
    const asked: Asked = { ledger, filter, after, limit };
    if (accept.includes('text/event-stream')) {
      const seen = schemas.lastEventIdOf(request.headers['last-event-id']);
      return this.follow({ ...asked, after: seen ?? after }, reply);
    }
    if (accept.includes('application/x-ndjson')) return this.lines(asked, reply);
    const page = await this.bus.execute(new ListEvents(ledger, filter, after, limit ?? DEFAULT_LIMIT));
    const next = page.next === undefined ? undefined : String(page.next);
    void reply.type('application/json; charset=utf-8').send(jsonPage(page.events, next));
  }

  /** A slow reader slows only itself: the next page is read when it has taken this one. */
  private async lines({ ledger, filter, after, limit }: Asked, reply: FastifyReply): Promise<void> {
    const batches = await this.events.all(ledger, filter, after);
    const lines = Readable.from(ndjson(atMost(batches, limit)), { objectMode: false });
    void reply.type('application/x-ndjson').send(lines);
  }

  private async follow({ ledger, filter, after, limit }: Asked, reply: FastifyReply): Promise<void> {
    const abort = this.streams.begin();
    reply.raw.once('close', () => {
      abort.abort();
    });
    try {
      const batches = await this.events.follow(ledger, filter, after, abort.signal);
      const messages = serverSentEvents(atMost(batches, limit));
      void reply
        .type('text/event-stream')
        .headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
        .send(Readable.from(messages, { objectMode: false }));
    } catch (error) {
      abort.abort();
      throw error;
    }
  }
}
