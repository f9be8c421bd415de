import { LogUnavailableError, OverloadedError } from '../../src/writer/submission';
import { byLoopback } from '../../src/http/auth/auth';
import { EventsController } from '../../src/http/reads/events.controller';
import { HealthController } from '../../src/http/reads/health.controller';
import { ReadsController } from '../../src/http/reads/reads.controller';
import { WritesController } from '../../src/http/writes.controller';
import { openApiDocument } from '../../src/http/openapi';
import { problemOf, toHttp } from '../../src/http/respond';
import { Problem } from '../../src/http/problems/problem';
import { problemBody, problemFrom } from '../../src/http/problems/problem-filter';
import type { CheckRefused } from '../../src/domain/answers';
import type { Rejection } from '../../src/domain/rejections';

const thrown = (act: () => unknown): Problem => {
  try {
    act();
  } catch (error) {
    if (error instanceof Problem) return error;
  }
  throw new Error('no problem was thrown');
};
const nobody = () => {
  throw new Error('nothing is to be reported');
};

describe('rejections', () => {
  const detail = 'sk-ant-not-to-be-repeated';
  it.each<[Rejection, number, string]>([
    [{ code: 'idempotency_conflict', detail: 'x' }, 409, 'idempotency_conflict'],
    [{ code: 'reservation_ended', detail: 'x', state: 'released' }, 409, 'reservation_ended'],
    [{ code: 'timezone_fixed', detail: 'x' }, 409, 'timezone_fixed'],
    [{ code: 'history_too_long', detail: 'x' }, 409, 'history_too_long'],
    [{ code: 'reservation_not_found', detail }, 404, 'reservation_not_found'],
    [{ code: 'charge_not_found', detail }, 404, 'charge_not_found'],
    [{ code: 'budget_not_found', detail }, 404, 'budget_not_found'],
    [{ code: 'price_not_found', detail }, 404, 'price_not_found'],
    [{ code: 'ledger_not_found', detail }, 404, 'ledger_not_found'],
    [{ code: 'ledger_not_open', detail }, 404, 'ledger_not_open'],
    [{ code: 'invalid', detail: 'x', faults: [{ path: 'a', message: 'b' }] }, 400, 'invalid_request'],
    [{ code: 'clock_skew', detail: 'x', retryAfterSeconds: 1.2 }, 503, 'clock_skew'],
  ])('%j', (rejection, status, code) => {
    const body = problemBody(problemOf(rejection));
    expect(body).toMatchObject({ type: `/problems/${code}`, status, code });
    expect(JSON.stringify(body)).not.toContain(detail);
  });

  it('a skewed clock says when to ask again, and that nothing was stored', () => {
    const problem = problemOf({ code: 'clock_skew', detail: 'x', retryAfterSeconds: 1.2 });
    expect(problem.headers).toEqual({ 'retry-after': '2' });
    expect(problemBody(problem)).toMatchObject({ outcome: 'none' });
  });
});

describe('answers', () => {
  const refused: CheckRefused = {
    kind: 'check-refused',
    advisory: false,
    requestId: 'r',
    attempt: 1,
    code: 'budget_exceeded',
    reasons: [
      { code: 'budget_exceeded', candidate: 0, budget: 'day', limit: '1' },
      { code: 'budget_exceeded', candidate: 0, budget: 'month', limit: '9' },
    ],
    nextAttempt: 2,
    position: 7,
  };

  it('casebook 7: a refusal is 402 and names every budget', () => {
    const problem = thrown(() => toHttp({ kind: 'answered', answer: refused, replayed: true }));
    expect(problem.headers).toEqual({ 'idempotent-replayed': 'true' });
    expect(problemBody(problem)).toMatchObject({
      status: 402,
      code: 'budget_exceeded',
      detail: 'refused by day, month: budget exceeded',
      reasons: refused.reasons,
      nextAttempt: 2,
      position: 7,
    });
  });

  it('the same as advice is 200', () => {
    const answer = { ...refused, advisory: true };
    expect(toHttp({ kind: 'answered', answer, replayed: false })).toMatchObject({
      status: 200,
      body: { decision: 'refused', code: 'budget_exceeded', reasons: refused.reasons },
    });
  });

  it.each([
    [new LogUnavailableError('unknown', 0.5, 'x'), 'log_unavailable', 'unknown', '1'],
    [new LogUnavailableError('none', 2, 'x'), 'log_unavailable', 'none', '2'],
    [new OverloadedError(1, 'x'), 'overloaded', 'none', '1'],
  ])('a log that cannot be written: 503 with its outcome (%s)', (error, code, outcome, retryAfter) => {
    const problem = problemFrom(error, nobody);
    expect(problemBody(problem)).toMatchObject({ status: 503, code, outcome });
    expect(problem.headers).toEqual({ 'retry-after': retryAfter });
  });

  it('an error nobody expected keeps its text to itself', () => {
    const told: unknown[] = [];
    const error = new Error('the password is 1234');
    const body = problemBody(problemFrom(error, (unexpected) => told.push(unexpected)));
    expect(body).toMatchObject({ status: 500, code: 'internal_error', outcome: 'unknown' });
    expect(JSON.stringify(body)).not.toContain('1234');
    expect(told).toEqual([error]);
  });
});

describe('without keys', () => {
  type Asked = Parameters<ReturnType<typeof byLoopback>>[0];
  const ask = (headers: Record<string, string>) => byLoopback()({ headers } as unknown as Asked);

  it.each(['localhost', 'localhost:8080', '127.0.0.1:8080', '127.1.2.3', '[::1]:8080', 'LOCALHOST'])(
    'a Host of this machine is answered: %s',
    (host) => {
      expect(ask({ host })).toBe('anonymous');
      expect(ask({ host, origin: `http://${host}` })).toBe('anonymous');
    },
  );

  it.each([
    'evil.example',
    'localhost.evil.example',
    'x@127.0.0.1',
    '127.0.0.1/x',
    '127.0.0.1.nip.io',
    '10.0.0.1',
    '',
  ])('no other name that was pointed here: %s', (host) => {
    expect(thrown(() => ask({ host }))).toMatchObject({ status: 403, code: 'forbidden_host' });
  });

  it.each(['https://evil.example', 'null', 'http://localhost.evil.example', 'file://'])(
    'no page of another site: %s',
    (origin) => {
      expect(thrown(() => ask({ host: 'localhost', origin }))).toMatchObject({
        status: 403,
        code: 'forbidden_host',
      });
    },
  );
});

describe('the OpenAPI document', () => {
  const document = openApiDocument() as {
    paths: Record<string, Record<string, { operationId: string }>>;
    components: { schemas: Record<string, unknown> };
  };
  const text = JSON.stringify(document);

  it('defines everything it refers to', () => {
    const names = [...text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name);
    expect(new Set(names)).toEqual(new Set(Object.keys(document.components.schemas)));
    expect(text).not.toContain('$defs');
  });

  it('names every operation once', () => {
    const ids = Object.values(document.paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('has exactly the routes that are served', () => {
    const METHODS = ['get', 'post', 'put', 'delete'];
    const served = [WritesController, ReadsController, EventsController, HealthController].flatMap(
      (controller) => {
        const base = String(Reflect.getMetadata('path', controller));
        const handlers = Object.values(Object.getOwnPropertyDescriptors(controller.prototype)).map(
          ({ value }) => value as object,
        );
        return handlers
          .filter((handler) => Reflect.hasMetadata('method', handler))
          .map((handler) => {
            const path = `/${base}/${String(Reflect.getMetadata('path', handler))}`.replace(/\/+/g, '/');
            const method = METHODS[Number(Reflect.getMetadata('method', handler))] ?? '';
            return `${method} ${path.replace(/(.)\/$/, '$1').replace(/:(\w+)/g, '{$1}')}`;
          });
      },
    );
    const described = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method} ${path}`),
    );
    expect(described.sort()).toEqual(served.sort());
  });
});
