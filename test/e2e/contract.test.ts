import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import type { z } from 'zod';
import * as answers from '../../src/http/answer-schemas';
import { ACCOUNT, RunningService, check, createTestDatabase } from './service';
import type { Reply, TestDatabase } from './service';

describe('the contract of commands', () => {
  let database: TestDatabase;
  let service: RunningService;

  beforeAll(async () => {
    database = await createTestDatabase();
    service = await RunningService.start(database, { LOG_LEVEL: 'trace' });
  });
  afterAll(async () => {
    expect(await service.stop()).toBe(0);
    await database.drop();
  });

  const holds = (schema: z.ZodType, { body }: Reply) => {
    const read = schema.safeParse(body);
    expect(read.error?.issues ?? []).toEqual([]);
  };

  it('a ledger is opened with 201 and found open with 200', async () => {
    const first = await service.put('/v1/ledgers/berlin', { settings: { timezone: 'Europe/Berlin' } });
    expect(first).toMatchObject({ status: 201, body: { ledger: 'berlin', timezone: 'Europe/Berlin' } });
    holds(answers.openedAnswer, first);
    const again = await service.put('/v1/ledgers/berlin');
    expect(again).toMatchObject({ status: 200, body: { ledger: 'berlin', timezone: 'Europe/Berlin' } });
    expect((await service.put('/v1/ledgers/Not%20A%20Slug', {})).status).toBe(400);
  });

  it('every answer has the fields that the document says', async () => {
    const base = '/v1/ledgers/shapes';
    holds(answers.openedAnswer, await service.put(base, {}));
    holds(answers.settingsAnswer, await service.put(`${base}/settings`, { minOutputTokens: 100 }));
    const day = {
      each: ['subject'],
      window: 'day',
      limit: '1',
      setAsides: [{ match: { workload: 'r' }, amount: '0.5' }],
    };
    holds(answers.budgetAnswer, await service.put(`${base}/budgets/day`, day));
    holds(answers.budgetAnswer, await service.put(`${base}/budgets/old`, { window: 'month', limit: '1' }));
    holds(answers.budgetRetiredAnswer, await service.call('DELETE', `${base}/budgets/old`));
    const price = `${base}/prices/mistral/${encodeURIComponent('vendor/模型')}`;
    const tiers = { base: '1', tiers: [{ above: 200_000, rate: '2' }] };
    const rates = {
      rates: { inputTokens: tiers, outputTokens: '3' },
      serviceTiers: { batch: { inputTokens: '1' } },
    };
    const set = await service.put(price, rates);
    expect(set.body).toMatchObject({ model: 'vendor/模型', origin: 'operator' });
    holds(answers.priceAnswer, set);
    holds(answers.priceRetiredAnswer, await service.call('DELETE', price));

    const asked = await service.post(`${base}/check-budget`, check('r1', 1_000, { subject: 'v' }));
    holds(answers.checkAnswer, asked);
    const { id } = asked.body.reservation;
    holds(
      answers.extendedAnswer,
      await service.post(`${base}/reservations/${id}/extend`, { ttlSeconds: 900 }),
    );
    const usage = { reservationId: id, outcome: 'succeeded', usage: { inputTokens: 1_000, outputTokens: 9 } };
    const recorded = await service.post(`${base}/record-usage`, usage);
    holds(answers.usageAnswer, recorded);
    const correction = { correctionId: 'c', amount: '0.5', reason: 'invoice' };
    const corrected = await service.post(`${base}/charges/${recorded.body.chargeId}/corrections`, correction);
    holds(answers.correctedAnswer, corrected);
    const other = await service.post(`${base}/check-budget`, check('r2', 1_000, { subject: 'w' }));
    const released = await service.post(`${base}/reservations/${other.body.reservation.id}/release`);
    holds(answers.releasedAnswer, released);

    const large = check('r3', 900_000, { subject: 'v' });
    const refused = await service.post(`${base}/check-budget`, large);
    expect(refused.status).toBe(402);
    holds(answers.refusedAnswer, refused);
    const advised = await service.post(`${base}/check-budget`, { ...large, reserve: false });
    expect(advised.status).toBe(200);
    holds(answers.checkAnswer, advised);
    holds(answers.bulkAnswer, await service.post(`${base}/check-budget/bulk`, { items: [large, {}] }));
    holds(answers.problemAnswer, await service.post(`${base}/check-budget`, {}));
  });

  it('casebook 7: a refusal names every budget that refuses, with the numbers it was judged on', async () => {
    const base = '/v1/ledgers/named';
    await service.put(base, {});
    await service.put(`${base}/budgets/day`, { window: 'day', limit: '0.01' });
    await service.put(`${base}/budgets/month`, {
      match: { provider: 'anthropic' },
      window: 'month',
      limit: '0.02',
    });
    await service.put(`${base}/budgets/roomy`, { window: 'month', limit: '5' });
    const { status, body } = await service.post(`${base}/check-budget`, check('r'));
    expect([status, body.detail]).toEqual([402, 'refused by day, month: budget exceeded']);
    const numbers = { code: 'budget_exceeded', candidate: 0, charged: '0', held: '0' };
    expect(body.reasons).toMatchObject([
      { ...numbers, budget: 'day', limit: '0.01', remaining: '0.01' },
      { ...numbers, budget: 'month', limit: '0.02', remaining: '0.02' },
    ]);
  });

  it('a body may be as large as one command needs, a bulk eight times that', async () => {
    const large = check('r', 1, { workload: 'x'.repeat(1_100_000) });
    expect((await service.post('check-budget', large)).body).toMatchObject({
      status: 413,
      code: 'body_too_large',
    });
    const bulk = await service.post('check-budget/bulk', { items: [large] });
    expect(bulk.body.results).toMatchObject([{ status: 400, body: { faults: [{ path: 'workload' }] } }]);
  });

  it('what is nested without end in a bulk is the fault of its item alone', async () => {
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    const fields = { usageId: 'd', account: ACCOUNT, model: 'claude-haiku-4-5', outcome: 'succeeded' };
    const record = (more: unknown) =>
      JSON.stringify({ ...fields, providerUsage: { input_tokens: 1, output_tokens: 1, more } });
    const items = `{"items":[${record(1)},${record('DEEP').replace('"DEEP"', deep)}]}`;
    const { body } = await service.post('record-usage/bulk', items);
    expect(body.results.map(({ status }: { status: number }) => status)).toEqual([200, 400]);
  });

  it('a bulk may be as large as a thousand real records', async () => {
    const account = { provider: 'openai', fingerprint: 'b2'.repeat(32) };
    const providerUsage = { prompt_tokens: 1_000, completion_tokens: 10, note: 'x'.repeat(2_000) };
    const items = Array.from({ length: 1_000 }, (_, i) => ({
      usageId: `u${i}`,
      account,
      model: 'gpt-4o-mini',
      outcome: 'succeeded',
      providerUsage,
    }));
    const { status, body } = await service.post('record-usage/bulk', { items });
    expect(status).toBe(200);
    expect(body.results.filter((result: { status: number }) => result.status === 200)).toHaveLength(1_000);
    const again = await service.post('record-usage/bulk', { items });
    expect(again.body.results.filter((result: { replayed?: true }) => result.replayed)).toHaveLength(1_000);
    expect((await service.post('record-usage/bulk', { items: [...items, items[0]] })).status).toBe(400);
    const note = { items: ['x'.repeat(9_000_000)] };
    expect((await service.post('record-usage/bulk', note)).body).toMatchObject({
      status: 413,
      code: 'body_too_large',
    });
  });

  it('none of it reached the output of the service', () => {
    expect(service.output).not.toMatch(/xxxx|"level":(50|60)/);
  });
});

describe('the start of a service', () => {
  it('a signal during the start is obeyed once what was started can be ended', async () => {
    const database = await createTestDatabase();
    // A schema of its own is migrated first, and says so: by then the service has begun to start.
    const env = {
      DATABASE_URL: database.url,
      DATABASE_SCHEMA: 'fresh',
      PORT: '0',
      AUTH: 'off',
      LOG_FORMAT: 'json',
    };
    const child = spawn(process.execPath, [resolve('dist/main.js')], {
      env: { PATH: process.env['PATH'], ...env },
    });
    const ended = new Promise<number | null>((tell) => child.once('exit', tell));
    let output = '';
    child.stdout.on('data', (part: Buffer) => {
      if (!output.includes('migrated') && part.includes('migrated')) child.kill('SIGTERM');
      output += part.toString('utf8');
    });
    expect(await ended).toBe(0);
    expect(output).toMatch(/migrated[^]*SIGTERM: finishing[^]*stopped/);
    await database.drop();
  });
});
