import { z } from 'zod';
import * as answers from './answer-schemas';
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
  readonly answer?: z.ZodType;
  /** Statuses beside 200, 400, 401 and 503; 201 answers as 200 does. */
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
    answer: answers.checkAnswer,
  },
  {
    method: 'post',
    path: `${L}/record-usage`,
    summary: 'Book what was really spent',
    body: recordUsage,
    also: [404, 409],
    answer: answers.usageAnswer,
  },
  {
    method: 'post',
    path: `${L}/check-budget/bulk`,
    summary: 'Up to 1,000 checks, each answered on its own',
    body: bulk,
    answer: answers.bulkAnswer,
    also: [404],
  },
  {
    method: 'post',
    path: `${L}/record-usage/bulk`,
    summary: 'Up to 1,000 records, each answered on its own',
    body: bulk,
    answer: answers.bulkAnswer,
    also: [404],
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
    answer: answers.releasedAnswer,
  },
  {
    method: 'post',
    path: `${L}/reservations/{id}/extend`,
    summary: 'More time',
    body: extend,
    also: [404, 409],
    answer: answers.extendedAnswer,
  },
  { method: 'get', path: `${L}/charges/{id}`, summary: 'One charge', query: reads.onlyAfter, also: [404] },
  {
    method: 'post',
    path: `${L}/charges/{id}/corrections`,
    summary: 'A new total for a charge',
    body: correction,
    also: [404, 409],
    answer: answers.correctedAnswer,
  },
  { method: 'get', path: `${L}/settings`, summary: 'The ledger’s settings', query: reads.onlyAfter },
  {
    method: 'put',
    path: `${L}/settings`,
    summary: 'Change settings; fields left out keep their values',
    body: settings,
    also: [409],
    answer: answers.settingsAnswer,
  },
  { method: 'get', path: '/v1/ledgers', summary: 'All ledgers' },
  {
    method: 'put',
    path: L,
    summary: 'Open a ledger',
    body: openLedger,
    answer: answers.openedAnswer,
    also: [201, 409],
  },
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
    answer: answers.budgetAnswer,
  },
  {
    method: 'delete',
    path: `${L}/budgets/{id}`,
    summary: 'Retire a budget',
    also: [404],
    answer: answers.budgetRetiredAnswer,
  },
  {
    method: 'get',
    path: `${L}/budgets/{id}/balances`,
    summary: 'One entry a bucket',
    query: reads.paged,
    also: [404],
  },
  { method: 'get', path: `${L}/spend`, summary: 'Grouped actuals, held and refusals', query: reads.spend },
  { method: 'get', path: `${L}/prices`, summary: 'The catalogue and what overrides it', query: reads.prices },
  {
    method: 'put',
    path: `${L}/prices/{provider}/{model}`,
    summary: 'Override a price',
    body: price,
    answer: answers.priceAnswer,
  },
  {
    method: 'delete',
    path: `${L}/prices/{provider}/{model}`,
    summary: 'Retire an override',
    also: [404],
    answer: answers.priceRetiredAnswer,
  },
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
  const schemas: Json = {};
  const problem = jsonSchema(answers.problemAnswer, 'output', schemas);
  const refused = jsonSchema(answers.refusedAnswer, 'output', schemas);
  const paths: Record<string, Json> = {};
  for (const route of ROUTES) {
    const responses = { ...done(route, schemas), ...problems(route, problem, refused) };
    (paths[route.path] ??= {})[route.method] = operation(route, responses, schemas);
  }
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

const PUBLIC = new Set(['/livez', '/readyz']);

function operation({ method, path, summary, body, query }: Route, responses: Json, schemas: Json): Json {
  const required = body !== undefined && !body.safeParse(undefined).success;
  return {
    summary,
    operationId: `${method}${path.replace(/\{(\w+)\}|[^A-Za-z]+/g, '_$1')}`.replace(/_+/g, '_'),
    parameters: [...pathParameters(path), ...queryParameters(query, schemas)],
    ...(body && {
      requestBody: {
        required,
        content: { 'application/json': { schema: jsonSchema(body, 'input', schemas) } },
      },
    }),
    responses,
    ...(PUBLIC.has(path) && { security: [] }),
  };
}

function done({ answer, also = [], content = ['application/json'] }: Route, schemas: Json): Json {
  const media = answer ? { schema: jsonSchema(answer, 'output', schemas) } : {};
  const responses: Json = {};
  for (const status of [200, ...also.filter((code) => code < 300)]) {
    responses[status] = {
      description: status === 201 ? 'Opened now' : 'Done',
      content: Object.fromEntries(content.map((type) => [type, media])),
    };
  }
  return responses;
}

function problems({ path, also = [] }: Route, problem: Json, refused: Json): Json {
  const always = PUBLIC.has(path) ? [] : [400, 401];
  const responses: Json = {};
  for (const status of [...always, ...also.filter((code) => code >= 400), 503]) {
    responses[status] = {
      description: DESCRIPTIONS[status] ?? 'Error',
      content: { 'application/problem+json': { schema: status === 402 ? refused : problem } },
    };
  }
  return responses;
}

const DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: 'Bad input: every fault is listed',
  401: 'An API key is needed',
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

function queryParameters(query: z.ZodType | undefined, schemas: Json): Json[] {
  if (!query) return [];
  const { properties = {} } = jsonSchema(query, 'input', schemas) as { properties?: Record<string, Json> };
  return Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', required: false, schema }));
}

/** As it is sent (`input`) or answered (`output`); what has a name of its own goes into `schemas`. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output', schemas: Json): Json {
  const made = z.toJSONSchema(schema, { io, unrepresentable: 'any', reused: 'inline' });
  const text = JSON.stringify(made).replaceAll('"#/$defs/', '"#/components/schemas/');
  const { $schema: _, $defs = {}, id, ...own } = JSON.parse(text) as Json & { $defs?: Record<string, Json> };
  for (const [name, { id: __, ...definition }] of Object.entries($defs)) schemas[name] ??= definition;
  if (typeof id !== 'string') return own;
  schemas[id] ??= own;
  return { $ref: `#/components/schemas/${id}` };
}
