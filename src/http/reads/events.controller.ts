import { Readable } from 'node:stream';
import { Controller, Get, Inject, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { StoredEvent } from '../../event-store/event-store';
import { envelope, eventsAfter, matchesFilter } from '../../queries/event-history';
import type { EventFilter } from '../../queries/event-history';
import { seen } from '../../queries/handlers';
import { ReadServices } from '../../queries/read-services';
import { invalidRequest, parsed } from '../problems/problem';
import * as schemas from './query-schemas';

const PAGE = 1_000;
const HEARTBEAT_MS = 15_000;

/** Open streams end when the service does. */
export class OpenStreams {
  private readonly open = new Set<AbortController>();

  begin(): AbortController {
    const abort = new AbortController();
    this.open.add(abort);
    abort.signal.addEventListener('abort', () => this.open.delete(abort));
    return abort;
  }

  closeAll(): void {
    for (const abort of [...this.open]) abort.abort();
  }
}

/** History: a page as JSON, all of it as NDJSON, or live as server-sent events. */
@Controller('v1/ledgers/:ledger/events')
export class EventsController {
  constructor(
    @Inject(ReadServices) private readonly services: ReadServices,
    @Inject(OpenStreams) private readonly streams: OpenStreams,
  ) {}

  @Get()
  async events(
    @Param('ledger') ledger: string,
    @Query() query: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { after, limit, from, to, type, requestId, conversation } = parsed(schemas.events, query);
    await seen(this.services, ledger, undefined);
    const filter: EventFilter = {
      type,
      requestId,
      conversation,
      fromMs: from === undefined ? undefined : Date.parse(from),
      toMs: to === undefined ? undefined : Date.parse(to),
    };
    const accept = request.headers.accept ?? '';
    if (accept.includes('text/event-stream')) {
      const last = request.headers['last-event-id'];
      this.follow(ledger, filter, revisionOf(typeof last === 'string' ? last : after), reply);
      return;
    }
    if (accept.includes('application/x-ndjson')) {
      const lines = this.lines(ledger, filter, revisionOf(after), limit);
      void reply.type('application/x-ndjson').send(Readable.from(lines));
      return;
    }
    const { events, next } = await eventsAfter(
      this.services,
      ledger,
      filter,
      revisionOf(after),
      limit ?? 100,
    );
    void reply.send({
      data: events.map(envelope),
      nextCursor: next === undefined ? undefined : cursorOf(next),
    });
  }

  /** The exact stored bytes, a line each; a slow reader slows only itself. */
  private async *lines(
    ledger: string,
    filter: EventFilter,
    from: number,
    limit = Infinity,
  ): AsyncGenerator<Buffer> {
    let after = from;
    let left = limit;
    while (left > 0) {
      const { events, next } = await eventsAfter(this.services, ledger, filter, after, Math.min(PAGE, left));
      left -= events.length;
      if (events.length > 0) yield Buffer.concat(events.flatMap(({ bytes }) => [bytes, NEWLINE]));
      if (next === undefined) return;
      after = next;
    }
  }

  private follow(ledger: string, filter: EventFilter, after: number, reply: FastifyReply): void {
    const abort = this.streams.begin();
    const stream = Readable.from(this.messages(ledger, filter, after, abort));
    reply.raw.once('close', () => {
      abort.abort();
    });
    void reply
      .type('text/event-stream')
      .headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
      .send(stream);
  }

  private async *messages(
    ledger: string,
    filter: EventFilter,
    after: number,
    { signal }: AbortController,
  ): AsyncGenerator<string> {
    const live = this.services.store.subscribe(ledger, { from: after + 1, signal, batchSize: 500 });
    const batches = live[Symbol.asyncIterator]();
    yield ': live\n\n';
    let pending = batches.next();
    let beat = heartbeat(signal);
    const ended = () => signal.aborted;
    while (!ended()) {
      const batch = await Promise.race([pending, beat]);
      if (batch === 'heartbeat') {
        if (!ended()) yield ': still here\n\n';
        beat = heartbeat(signal);
      } else if (batch.done) return;
      else {
        const told = batch.value.filter((event) => matchesFilter(event, filter)).map(message);
        if (told.length > 0) yield told.join('');
        pending = batches.next();
      }
    }
    await batches.return?.();
  }
}

const NEWLINE = Buffer.from('\n');
const message = ({ revision, type, bytes }: StoredEvent): string =>
  `id: ${revision}\nevent: ${type}\ndata: ${bytes.toString('utf8')}\n\n`;

/** Something to say when nothing happens, so that proxies keep the line. */
function heartbeat(signal: AbortSignal): Promise<'heartbeat'> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      resolve('heartbeat');
    };
    const timer = setTimeout(done, HEARTBEAT_MS).unref();
    signal.addEventListener('abort', done, { once: true });
  });
}

const cursorOf = (revision: number): string => Buffer.from(`r${revision}`).toString('base64url');

/** A cursor of ours, or a plain revision; nothing: from the beginning. */
function revisionOf(cursor: string | undefined): number {
  if (cursor === undefined || cursor === '') return -1;
  const plain = /^\d{1,15}$/.test(cursor)
    ? cursor
    : /^r(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString('utf8'))?.[1];
  if (plain === undefined) throw invalidRequest([{ path: 'after', message: 'is not one of our cursors' }]);
  return Number(plain);
}
