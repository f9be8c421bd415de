import { z } from 'zod';
import * as reads from './reads/query-schemas';
import { checkBudget } from '../schemas/check';
import { budget, openLedger, price, settings } from '../schemas/policy';
import { correction, extend, recordUsage } from '../schemas/usage';

interface Route {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  readonly path: string;
  readonly summary: string;
  readonly body?: z.ZodType;
  readonly query?: z.ZodType;
  /** Statuses beside 200, 400 and 503. */
  readonly also?: readonly number[];
  readonly content?: readonly string[];
}

const L = '/v1/ledgers/{ledger}';
const bulk = z.strictObject({ items: z.array(z.unknown()).min(1).max(1_000) });

/** Every route with the schemas that validate it: the one source of the document. */
const ROUTES: readonly Route[] = [
  {
    method: 'post',
    path: `${L}/check-budget`,
    summary: 'Reserve the estimate, or be refused with every reason',
    body: checkBudget,
    also: [402, 404, 409],
  },
  {
    method: 'post',
    path: `${L}/record-usage`,
    summary: 'Book what was really spent',
    body: recordUsage,
    also: [404, 409],
  },
  {
    method: 'post',
    path: `${L}/check-budget/bulk`,
    summary: 'Up to 1,000 checks, each answered on its own',
    body: bulk,
  },
  {
    method: 'post',
    path: `${L}/record-usage/bulk`,
    summary: 'Up to 1,000 records, each answered on its own',
    body: bulk,
  },
  {
    method: 'get',
    path: `${L}/reservations`,
    summary: 'Reservations, newest first',
    query: reads.reservations,
  },
  {
    method: 'get',
    path: `${L}/reservations/{id}`,
    summary: 'One reservation',
    query: reads.onlyAfter,
    also: [404],
  },
  {
    method: 'post',
    path: `${L}/reservations/{id}/release`,
    summary: 'Give back what was never sent',
    also: [404, 409],
  },
  {
    method: 'post',
    path: `${L}/reservations/{id}/extend`,
    summary: 'More time',
    body: extend,
    also: [404, 409],
  },
  { method: 'get', path: `${L}/charges/{id}`, summary: 'One charge', query: reads.onlyAfter, also: [404] },
  {
    method: 'post',
    path: `${L}/charges/{id}/corrections`,
    summary: 'A new total for a charge',
    body: correction,
    also: [404, 409],
  },
  { method: 'get', path: `${L}/settings`, summary: 'The ledger’s settings', query: reads.onlyAfter },
  {
    method: 'put',
    path: `${L}/settings`,
    summary: 'Change settings; fields left out keep their values',
    body: settings,
    also: [409],
  },
  { method: 'get', path: '/v1/ledgers', summary: 'All ledgers' },
  { method: 'put', path: L, summary: 'Open a ledger', body: openLedger },
  {
    method: 'get',
    path: `${L}/headroom`,
    summary: 'What each matching budget has left',
    query: z.strictObject({
      after: reads.after,
      provider: z.string().optional(),
      account: z.string().optional(),
      model: z.string().optional(),
      workload: z.string().optional(),
      subject: z.string().optional(),
      conversation: z.string().optional(),
    }),
  },
  {
    method: 'get',
    path: `${L}/budgets`,
    summary: 'Budgets with their current numbers',
    query: reads.budgets,
  },
  {
    method: 'get',
    path: `${L}/budgets/{id}`,
    summary: 'One budget with its current numbers',
    query: reads.onlyAfter,
    also: [404],
  },
  {
    method: 'put',
    path: `${L}/budgets/{id}`,
    summary: 'Define or amend a budget',
    body: budget,
    also: [409],
  },
  { method: 'delete', path: `${L}/budgets/{id}`, summary: 'Retire a budget', also: [404] },
  {
    method: 'get',
    path: `${L}/budgets/{id}/balances`,
    summary: 'One entry a bucket',
    query: reads.paged,
    also: [404],
  },
  { method: 'get', path: `${L}/spend`, summary: 'Grouped actuals, held and refusals', query: reads.spend },
  { method: 'get', path: `${L}/prices`, summary: 'The catalogue and what overrides it', query: reads.prices },
  { method: 'put', path: `${L}/prices/{provider}/{model}`, summary: 'Override a price', body: price },
  { method: 'delete', path: `${L}/prices/{provider}/{model}`, summary: 'Retire an override', also: [404] },
  {
    method: 'get',
    path: `${L}/requests/{id}`,
    summary: 'Everything one request did',
    query: reads.onlyAfter,
    also: [404],
  },
  {
    method: 'get',
    path: `${L}/events`,
    summary: 'History: JSON, NDJSON, or live server-sent events',
    query: reads.events,
    content: ['application/json', 'application/x-ndjson', 'text/event-stream'],
  },
  { method: 'get', path: `${L}/state`, summary: 'The ledger as it stood', query: reads.state },
  {
    method: 'get',
    path: `${L}/verify`,
    summary: 'Walk the hash chain, compare read models with a fresh fold',
    query: reads.onlyAfter,
  },
  { method: 'get', path: '/livez', summary: 'The process lives' },
  { method: 'get', path: '/readyz', summary: 'Database, log and projections work' },
];

type Json = Record<string, unknown>;

/** OpenAPI 3.1 of the service, from the schemas that validate it. */
export function openApiDocument(): Json {
  const paths: Record<string, Json> = {};
  const schemas: Json = { Problem: PROBLEM };
  for (const route of ROUTES) (paths[route.path] ??= {})[route.method] = operation(route, schemas);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Spend Ledger',
      version: '0.1.0',
      description:
        'Decides, before every paid model call, whether the money for it is there. Money is a decimal USD string, times are RFC 3339 UTC.',
    },
    paths,
    components: {
      schemas,
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'slk_…' } },
    },
    security: [{ key: [] }],
  };
}

const PROBLEM: Json = {
  type: 'object',
  description: 'RFC 9457; further members by code: reasons, faults, retryAt, nextAttempt, position, outcome',
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: { type: 'string' },
  },
  required: ['type', 'title', 'status', 'detail', 'code'],
};

function operation(route: Route, components: Json): Json {
  const { method, path, summary, body, query, also = [], content = ['application/json'] } = route;
  const problem = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } };
  const responses: Json = {
    200: { description: 'Done', content: Object.fromEntries(content.map((type) => [type, {}])) },
  };
  for (const status of [400, ...also, 503])
    responses[status] = { description: DESCRIPTIONS[status] ?? 'Error', content: problem };
  return {
    summary,
    operationId: `${method}${path.replace(/\{(\w+)\}|[^A-Za-z]+/g, '_$1')}`.replace(/_+/g, '_'),
    parameters: [...pathParameters(path), ...queryParameters(query)],
    ...(body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: jsonSchema(body, components) } },
      },
    }),
    responses,
  };
}

const DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: 'Bad input: every fault is listed',
  402: 'Refused: every reason with its numbers',
  404: 'Not found',
  409: 'Conflict with what is recorded',
  503: 'Cannot be decided now: see Retry-After and outcome',
};

const pathParameters = (path: string): Json[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));

function queryParameters(query: z.ZodType | undefined): Json[] {
  if (!query) return [];
  const { properties = {} } = jsonSchema(query, {}) as { properties?: Record<string, Json> };
  return Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', required: false, schema }));
}

/** As callers send it; named schemas go into the document's components, where their references lead. */
function jsonSchema(schema: z.ZodType, components: Json): Json {
  const { $schema: _, $defs = {}, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  const placed = (value: unknown): Json =>
    JSON.parse(
      JSON.stringify(value)
        .replaceAll('"#/$defs/', '"#/components/schemas/')
        .replace(/"(?:\$?id)":"[A-Z]\w+",?/g, ''),
    ) as Json;
  for (const [name, definition] of Object.entries($defs)) components[name] = placed(definition);
  return placed(rest);
}
