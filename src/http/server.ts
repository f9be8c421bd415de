import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import type { DynamicModule } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { SwaggerModule } from '@nestjs/swagger';
import type { OpenAPIObject } from '@nestjs/swagger';
import { guard } from './auth/auth';
import type { Authenticate } from './auth/auth';
import { openApiDocument } from './openapi';
import { Problem } from './problems/problem';
import { ProblemFilter, sendProblem } from './problems/problem-filter';

const BODY_LIMIT = 4 * 1024 * 1024;
/** Requests in flight may end; then their connections are closed. */
const KEEP_ALIVE_MS = 30_000;
const REQUEST_MS = 30_000;

/** Beyond this a body is not even read to its end. */
const MOST_DRAINED = 16 * BODY_LIMIT;

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
    routerOptions: { maxParamLength: 1_000 },
  });
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    logger: false,
    abortOnError: false,
  });
  const server = adapter.getInstance();
  // A page in a browser may send text without asking first; only JSON is a command.
  server.removeContentTypeParser('text/plain');
  refuseLargeBodies(server);
  guard(server, authenticate);
  app.useGlobalFilters(new ProblemFilter(report));
  SwaggerModule.setup('docs', app, openApiDocument() as unknown as OpenAPIObject, {
    jsonDocumentUrl: 'openapi.json',
    customSiteTitle: 'Spend Ledger',
  });
  return app;
}

/**
 * A body that says it is too large is read to its end and thrown away before the answer: a client that is still sending
 * when the connection closes sees a broken pipe in place of the 413.
 */
function refuseLargeBodies(server: FastifyInstance): void {
  server.addHook('onRequest', (request, reply, done) => {
    const length = Number(request.headers['content-length'] ?? 0);
    if (!(length > BODY_LIMIT)) {
      done();
      return;
    }
    const refuse = () => {
      sendProblem(reply, new Problem(413, 'body_too_large', 'the body is too large'));
    };
    if (length > MOST_DRAINED) refuse();
    else request.raw.resume().once('end', refuse);
  });
}
