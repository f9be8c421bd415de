import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import type { DynamicModule } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { SwaggerModule } from '@nestjs/swagger';
import type { OpenAPIObject } from '@nestjs/swagger';
import { guard } from './auth/auth';
import type { Authenticate } from './auth/auth';
import { openApiDocument } from './openapi';
import { ProblemFilter } from './problems/problem-filter';

const BODY_LIMIT = 4 * 1024 * 1024;
/** Requests in flight may end; then their connections are closed. */
const KEEP_ALIVE_MS = 30_000;
const REQUEST_MS = 30_000;

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
  guard(server, authenticate);
  app.useGlobalFilters(new ProblemFilter(report));
  SwaggerModule.setup('docs', app, openApiDocument() as unknown as OpenAPIObject, {
    jsonDocumentUrl: 'openapi.json',
    customSiteTitle: 'Spend Ledger',
  });
  return app;
}
