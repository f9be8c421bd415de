import 'reflect-metadata';
import type { Socket } from 'node:net';
import { NestFactory } from '@nestjs/core';
import type { DynamicModule } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { SwaggerModule } from '@nestjs/swagger';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { guard } from './auth/auth';
import type { Authenticate } from './auth/auth';
import { openApiDocument } from './openapi';
import { Problem } from './problems/problem';
import { ProblemFilter, problemBody, sendProblem } from './problems/problem-filter';

const MIB = 1024 * 1024;
const BODY_LIMIT = MIB;
const BULK_BODY_LIMIT = 8 * MIB;
/** Requests in flight may end; then their connections are closed. */
const KEEP_ALIVE_MS = 30_000;
const REQUEST_MS = 30_000;
/** Two hundred characters outside of ASCII, percent-encoded. */
const LONGEST_PARAMETER = 2_400;

export interface ServerParts {
  readonly module: DynamicModule;
  readonly authenticate: Authenticate;
  readonly report: (error: unknown) => void;
}

/** The HTTP server, not listening yet. */
export async function createServer({
  module,
  authenticate,
  report,
}: ServerParts): Promise<NestFastifyApplication> {
  const adapter = new FastifyAdapter({
    bodyLimit: BODY_LIMIT,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: REQUEST_MS,
    forceCloseConnections: 'idle',
    // Told by `refuseWhenClosing`, as a problem.
    return503OnClosing: false,
    routerOptions: { maxParamLength: LONGEST_PARAMETER },
    // What fails before a route is found. The framework's own texts would say the path back.
    frameworkErrors: (_error: unknown, _request: unknown, reply: FastifyReply) => {
      sendProblem(reply, UNREADABLE_PATH);
    },
    clientErrorHandler: tellUnreadable,
  });
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    logger: false,
    abortOnError: false,
    bodyParser: false,
  });
  const server = adapter.getInstance();
  server.addHook('onRoute', (route) => {
    if (route.url.endsWith('/bulk')) route.bodyLimit = BULK_BODY_LIMIT;
  });
  takeOnlyJson(server);
  refuseWhenClosing(server);
  guard(server, authenticate);
  app.useGlobalFilters(new ProblemFilter(report));
  SwaggerModule.setup('docs', app, openApiDocument() as unknown as OpenAPIObject, {
    jsonDocumentUrl: 'openapi.json',
    customSiteTitle: 'Spend Ledger',
  });
  return app;
}

const UNREADABLE_PATH = new Problem(400, 'invalid_request', 'the path cannot be read', {
  faults: [{ path: '', message: 'the path cannot be read' }],
});

/**
 * A page in a browser may send text and forms without asking first; only JSON is a command. An empty body counts as
 * none: many clients name the type of bodies they do not send.
 */
function takeOnlyJson(server: FastifyInstance): void {
  const parse = server.getDefaultJsonParser('error', 'error');
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined);
    else void parse(request, body as string, done);
  });
}

/** What arrives on open connections while the service ends is told to come again; nothing of it was stored. */
function refuseWhenClosing(server: FastifyInstance): void {
  let closing = false;
  server.addHook('preClose', (done) => {
    closing = true;
    done();
  });
  server.addHook('onRequest', (_request, reply, done) => {
    if (closing) sendProblem(reply, SHUTTING_DOWN);
    else done();
  });
}

const SHUTTING_DOWN = new Problem(
  503,
  'shutting_down',
  'the service is stopping',
  { outcome: 'none' },
  { 'retry-after': '1' },
);

/** Bytes that are no HTTP: there is no request to answer, only a connection. */
function tellUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const problem =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new Problem(431, 'headers_too_large', 'the headers are too large')
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? new Problem(408, 'request_timeout', 'the request did not arrive in time')
        : new Problem(400, 'invalid_request', 'this is not an HTTP request', {
            faults: [{ path: '', message: 'this is not an HTTP request' }],
          });
  const body = problemBody(problem);
  const text = JSON.stringify(body);
  const head = [
    `HTTP/1.1 ${problem.status} ${String(body['title'])}`,
    'content-type: application/problem+json; charset=utf-8',
    `content-length: ${Buffer.byteLength(text)}`,
    'connection: close',
  ];
  if (socket.writable) socket.write(`${head.join('\r\n')}\r\n\r\n${text}`);
  socket.destroy(error);
}
