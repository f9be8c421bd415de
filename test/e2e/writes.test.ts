import { ACCOUNT, RunningService, check, createTestDatabase } from './service';
import type { TestDatabase } from './service';

describe('the service over HTTP', () => {
  let database: TestDatabase;
  let service: RunningService;

  beforeAll(async () => {
    database = await createTestDatabase();
    service = await RunningService.start(database);
  });
  afterAll(async () => {
    expect(await service.stop()).toBe(0);
    await database.drop();
  });

  /** A ledger of a test's own; its base path. */
  const ledger = async (id: string, budgets: Record<string, object> = {}): Promise<string> => {
    const base = `/v1/ledgers/${id}`;
    expect((await service.put(base, {})).status).toBe(201);
    for (const [name, budget] of Object.entries(budgets)) {
      expect((await service.put(`${base}/budgets/${name}`, budget)).status).toBe(200);
    }
    return base;
  };

  it('reserves, books, replays and refuses with the statuses, codes and fields of the contract', async () => {
    const base = await ledger('contract', { day: { match: {}, window: 'day', limit: '0.03' } });
    const first = await service.post(`${base}/check-budget`, check('r1'));
    expect(first).toMatchObject({
      status: 200,
      body: {
        decision: 'allowed',
        requestId: 'r1',
        attempt: 1,
        model: 'claude-haiku-4-5',
        estimate: { inputTokens: 1_000, outputTokens: 4_096, amount: '0.02148' },
        reservation: { amount: '0.02148' },
        budgets: [{ id: 'day', limit: '0.03', charged: '0', held: '0.02148', remaining: '0.00852' }],
      },
    });
    const refused = await service.post(`${base}/check-budget`, check('r2'));
    expect(refused).toMatchObject({
      status: 402,
      body: {
        type: '/problems/budget_exceeded',
        status: 402,
        code: 'budget_exceeded',
        nextAttempt: 2,
        reasons: [
          {
            code: 'budget_exceeded',
            candidate: 0,
            budget: 'day',
            limit: '0.03',
            charged: '0',
            held: '0.02148',
            remaining: '0.00852',
          },
        ],
      },
    });
    expect(refused.headers.get('content-type')).toContain('application/problem+json');
    expect(refused.body.retryAt).toBe(refused.body.reasons[0].resetsAt);
    const again = await service.post(`${base}/check-budget`, check('r1'));
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
    expect(again.body).toEqual(first.body);
    expect((await service.post(`${base}/check-budget`, check('r1', 2_000))).body).toMatchObject({
      status: 409,
      code: 'idempotency_conflict',
    });

    const record = {
      reservationId: first.body.reservation.id,
      outcome: 'succeeded',
      usage: { inputTokens: 1_000, outputTokens: 100 },
    };
    const booked = await service.post(`${base}/record-usage`, record);
    expect(booked).toMatchObject({
      status: 200,
      body: { charged: '0.0015', released: '0.01998', overrun: '0', quality: 'confirmed' },
    });
    const replay = await service.post(`${base}/record-usage`, {
      usage: { outputTokens: 100, inputTokens: 1_000 },
      outcome: 'succeeded',
      reservationId: record.reservationId,
    });
    expect([replay.headers.get('idempotent-replayed'), replay.body]).toEqual(['true', booked.body]);
    expect(
      (await service.post(`${base}/record-usage`, { ...record, usage: { inputTokens: 1 } })).status,
    ).toBe(409);
    expect((await service.post(`${base}/check-budget`, check('r1'))).body).toMatchObject({
      code: 'reservation_ended',
      nextAttempt: 2,
    });
    expect((await service.post(`${base}/check-budget`, check('r2', 1_000, { attempt: 2 }))).status).toBe(200);
  });

  it('casebook 1: of 200 checks at once exactly the 46 pass that there is room for', async () => {
    const base = await ledger('race', { room: { match: {}, window: 'day', limit: '0.98808' } });
    const replies = await Promise.all(
      Array.from({ length: 200 }, (_, i) => service.post(`${base}/check-budget`, check(`r${i}`))),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(46);
    expect(replies.filter(({ status }) => status === 402)).toHaveLength(154);
  });

  it('casebook 2: the first concurrent requests of an unknown visitor are held to its allowance', async () => {
    const base = await ledger('visitors', {
      v: { match: {}, each: ['subject'], window: 'day', limit: '0.05' },
    });
    const asked = Array.from({ length: 40 }, (_, i) => check(`r${i}`, 1_000, { subject: `v${i % 4}` }));
    const replies = await Promise.all(asked.map((body) => service.post(`${base}/check-budget`, body)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(8);
  });

  it('casebook 17: concurrent twins get one answer between them', async () => {
    const base = await ledger('twins', { day: { match: {}, window: 'day', limit: '1' } });
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => service.post(`${base}/check-budget`, check('same'))),
    );
    expect(new Set(replies.map(({ body }) => body.reservation.id)).size).toBe(1);
    expect(replies.filter(({ headers }) => headers.get('idempotent-replayed') === 'true')).toHaveLength(19);
  });

  it('asking only answers 200 either way', async () => {
    const base = await ledger('advice', { day: { match: {}, window: 'day', limit: '0.01' } });
    const asked = await service.post(`${base}/check-budget`, check('r1', 1_000, { reserve: false }));
    expect(asked).toMatchObject({
      status: 200,
      body: { decision: 'refused', code: 'budget_exceeded', reasons: [{ budget: 'day' }] },
    });
  });

  it('takes usage as the provider reports it, also for what nobody reserved', async () => {
    const base = await ledger('usage');
    const providerUsage = {
      input_tokens: 4,
      cache_creation_input_tokens: 12_304,
      cache_read_input_tokens: 0,
      output_tokens: 550,
    };
    const unreserved = {
      usageId: 'u1',
      account: ACCOUNT,
      model: 'claude-sonnet-4-5',
      outcome: 'succeeded',
      providerUsage,
    };
    expect((await service.post(`${base}/record-usage`, unreserved)).body).toMatchObject({
      charged: '0.054402',
      quality: 'confirmed',
    });
    const unknown = { ...unreserved, usageId: 'u2', providerUsage: { tokens: 1 } };
    expect((await service.post(`${base}/record-usage`, unknown)).body.faults).toEqual([
      { path: 'providerUsage', message: 'has no usage of a known provider; fields seen: tokens' },
    ]);
    const far = { ...unreserved, usageId: 'u3', occurredAt: '2020-01-01T00:00:00Z' };
    expect((await service.post(`${base}/record-usage`, far)).body).toMatchObject({
      status: 400,
      code: 'invalid_request',
      faults: [{ path: 'occurredAt' }],
    });
  });

  it('reads usage by the provider of its reservation: xAI leaves reasoning out of its output', async () => {
    const base = await ledger('xai');
    const account = { ...ACCOUNT, provider: 'xai' };
    const { body } = await service.post(
      `${base}/check-budget`,
      check('r1', 100, { account, model: 'grok-4' }),
    );
    const providerUsage = { prompt_tokens: 100, completion_tokens: 5, reasoning_tokens: 20 };
    const record = { reservationId: body.reservation.id, outcome: 'succeeded', providerUsage };
    // 100 at 3 and 25 at 15 USD a million.
    expect((await service.post(`${base}/record-usage`, record)).body.charged).toBe('0.000675');
  });

  it('answers each of a bulk on its own', async () => {
    const base = await ledger('bulk', { day: { match: {}, window: 'day', limit: '0.03' } });
    const { status, body } = await service.post(`${base}/check-budget/bulk`, {
      items: [check('r1'), check('r2'), { requestId: 5 }],
    });
    expect(status).toBe(200);
    expect(body.results.map((result: { status: number }) => result.status)).toEqual([200, 402, 400]);
    const ids = [
      { reservationId: body.results[0].body.reservation.id, outcome: 'failed', error: { status: 529 } },
      { reservationId: 'rsv_1_000000000000', outcome: 'succeeded' },
    ];
    const recorded = await service.post(`${base}/record-usage/bulk`, { items: ids });
    expect(recorded.body.results.map((result: { status: number }) => result.status)).toEqual([200, 404]);
  });

  it('prices are set under names with a slash, and used', async () => {
    const base = await ledger('prices');
    const path = `${base}/prices/openrouter/${encodeURIComponent('vendor/some-model')}`;
    expect((await service.put(path, { rates: { inputTokens: '2', outputTokens: '0' } })).body).toMatchObject({
      model: 'vendor/some-model',
      source: 'override',
    });
    const asked = await service.post(
      `${base}/check-budget`,
      check('r1', 1_000_000, { account: { ...ACCOUNT, provider: 'openrouter' }, model: 'vendor/some-model' }),
    );
    expect(asked.body.reservation.amount).toBe('2');
    expect((await service.call('DELETE', path)).status).toBe(200);
    expect((await service.call('DELETE', path)).status).toBe(404);
    expect((await service.put(path, { rates: { inputTokens: '-2', tokens: '1' } })).body.faults).toHaveLength(
      2,
    );
  });

  it('releases, extends, corrects', async () => {
    const base = await ledger('ends');
    const held = (await service.post(`${base}/check-budget`, check('r1'))).body.reservation.id;
    expect((await service.post(`${base}/reservations/${held}/extend`, { ttlSeconds: 3_600 })).status).toBe(
      200,
    );
    expect((await service.post(`${base}/reservations/${held}/release`)).body).toMatchObject({
      released: '0.02148',
    });
    expect(
      (await service.post(`${base}/reservations/${held}/extend`, { ttlSeconds: 3_600 })).body,
    ).toMatchObject({ status: 409, code: 'reservation_ended' });
    const late = await service.post(`${base}/record-usage`, {
      reservationId: held,
      outcome: 'succeeded',
      usage: { inputTokens: 1_000 },
    });
    expect(late.body).toMatchObject({ charged: '0.001', late: true });
    const correction = { correctionId: 'k', amount: '0.5', reason: 'invoice' };
    expect(
      (await service.post(`${base}/charges/${late.body.chargeId}/corrections`, correction)).body,
    ).toMatchObject({ charged: '0.5', previous: '0.001' });
  });

  it('ids of other ledgers name nothing here', async () => {
    const a = await ledger('one');
    const b = await ledger('two');
    const id = (await service.post(`${a}/check-budget`, check('r1'))).body.reservation.id;
    expect(
      (await service.post(`${b}/record-usage`, { reservationId: id, outcome: 'succeeded' })).body,
    ).toMatchObject({ status: 404, code: 'reservation_not_found' });
    expect((await service.post('/v1/ledgers/nowhere/check-budget', check('r1'))).body).toMatchObject({
      status: 404,
      code: 'ledger_not_found',
    });
  });
});

describe('bad input', () => {
  let database: TestDatabase;
  let service: RunningService;
  const SECRET = 'sk-ant-api03-veryverysecret';

  beforeAll(async () => {
    database = await createTestDatabase();
    service = await RunningService.start(database, { LOG_LEVEL: 'trace' });
  });
  afterAll(async () => {
    await service.stop();
    await database.drop();
  });

  it.each<[string, unknown, number]>([
    ['no JSON', '{"a', 400],
    ['no object', [], 400],
    ['nothing', {}, 400],
    ['wrong types', { ...check('r'), model: 5 }, 400],
    ['an unknown field', { ...check('r'), maxTokens: 5 }, 400],
    ['a negative count', check('r', -1), 400],
    ['a fraction', check('r', 1.5), 400],
    ['an absurd count', check('r', 2_000_000_000), 400],
    ['NUL', check('r\u0000'), 400],
    ['half a surrogate pair', JSON.stringify(check('r')).replace('"r"', '"\\ud800"'), 400],
    ['a raw key', check('r', 1, { account: { provider: 'anthropic', fingerprint: SECRET } }), 400],
    ['a raw key as a field', { ...check('r'), [SECRET]: 1 }, 400],
    [
      'nine fallbacks',
      check('r', 1, { fallbacks: Array.from({ length: 9 }, () => ({ account: ACCOUNT, model: 'm' })) }),
      400,
    ],
    ['a far ttl', check('r', 1, { ttlSeconds: 86_401 }), 400],
    ['5 MB', check('r', 1, { workload: 'x'.repeat(5_000_000) }), 413],
  ])('%s', async (_name, body, status) => {
    const reply = await service.post('check-budget', body);
    expect(reply.status).toBe(status);
    expect(reply.headers.get('content-type')).toContain('application/problem+json');
    if (status === 400) expect(reply.body.faults.length).toBeGreaterThan(0);
    expect(JSON.stringify(reply.body)).not.toContain(SECRET);
  });

  it('a body nested without end is a fault, and a key pasted as an error code is not kept', async () => {
    const deep = `{"usageId":"d","account":${JSON.stringify(ACCOUNT)},"model":"m","outcome":"failed","error":{"status":500,"body":${'{"a":'.repeat(6_000)}1${'}'.repeat(6_000)}}}`;
    expect((await service.post('record-usage', deep)).status).toBe(400);
    expect((await service.put('/v1/ledgers/keys', {})).status).toBe(201);
    const error = { status: 401, type: `${SECRET}-type`, code: SECRET };
    const failed = { usageId: 'k', account: ACCOUNT, model: 'm', outcome: 'failed', error };
    expect((await service.post('/v1/ledgers/keys/record-usage', failed)).status).toBe(200);
    expect(JSON.stringify((await service.get('/v1/ledgers/keys/events')).body)).not.toContain(SECRET);
  });

  it('names every fault at once', async () => {
    const { body } = await service.put('budgets/Day!', {
      limit: '-5',
      window: 'year',
      setAsides: [{ match: {}, amount: 'x' }],
      extra: 1,
    });
    expect(body.status).toBe(400);
    const { body: more } = await service.put('budgets/day', {
      limit: '-5',
      window: 'year',
      setAsides: [{ match: {}, amount: 'x' }],
      extra: 1,
    });
    expect(more.faults.map((fault: { path: string }) => fault.path).sort()).toEqual([
      'extra',
      'limit',
      'setAsides.0.amount',
      'window',
    ]);
  });

  it('leaves nothing in the log, and a key neither in answers nor in the service’s own output', async () => {
    await service.get(`headroom?account=${SECRET}`);
    const { body } = await service.get('events');
    expect(body.data.map((event: { type: string }) => event.type)).toEqual(['LedgerOpened']);
    expect(service.output).not.toContain(SECRET);
  });

  it('other paths, methods and media types are problems too', async () => {
    expect((await service.get('/nowhere')).body).toMatchObject({ status: 404, code: 'not_found' });
    expect((await service.post('check-budget', 'x', { 'content-type': 'text/plain' })).status).toBe(415);
  });
});

describe('access', () => {
  it('with keys the first start shows one, and only that one opens', async () => {
    const database = await createTestDatabase();
    const service = await RunningService.start(database, { AUTH: 'keys' });
    const key = /slk_[\w-]{43}/.exec(service.output)?.[0] ?? '';
    expect((await service.get('events')).status).toBe(401);
    expect((await service.get('events', { authorization: 'Bearer slk_wrong' })).status).toBe(401);
    expect((await service.get('events', { authorization: `Bearer ${key}` })).status).toBe(200);
    expect((await service.get('/livez')).status).toBe(200);
    await service.stop();
    const again = await RunningService.start(database, { AUTH: 'keys' });
    expect(again.output).not.toContain('slk_');
    expect((await again.get('events', { authorization: `Bearer ${key}` })).status).toBe(200);
    await again.stop();
    await database.drop();
  });

  it('a policy file and a daily limit are applied once, however often the service starts', async () => {
    const database = await createTestDatabase();
    const env = { POLICY_FILE: 'examples/policy.yaml', DAILY_LIMIT: '5.00' };
    for (let start = 0; start < 2; start += 1) {
      const service = await RunningService.start(database, env);
      const { body } = await service.get('events');
      const types = body.data.map((event: { type: string }) => event.type);
      expect(types.filter((type: string) => type === 'BudgetDefined')).toHaveLength(6);
      expect(types.filter((type: string) => type === 'PriceSet')).toHaveLength(1);
      await service.stop();
    }
    await database.drop();
  });

  it('a wrong environment ends the start with every fault named', async () => {
    const database = await createTestDatabase();
    await expect(
      RunningService.start(database, { PORT: 'x', AUTH: 'maybe', DAILY_LIMIT: '-1' }),
    ).rejects.toThrow(/PORT[\s\S]*DAILY_LIMIT[\s\S]*AUTH|DAILY_LIMIT[\s\S]*PORT|PORT[\s\S]*AUTH/);
    await database.drop();
  });
});
