import pg from 'pg';
import { ACCOUNT, RunningService, check, createTestDatabase } from './service';
import type { TestDatabase } from './service';

describe('queries and history over HTTP', () => {
  let database: TestDatabase;
  let service: RunningService;
  const positions: number[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
    service = await RunningService.start(database);
    await service.put('budgets/day', {
      match: { provider: 'anthropic' },
      window: 'day',
      limit: '5',
      setAsides: [{ match: { workload: 'report' }, amount: '3' }],
    });
    await service.put('budgets/visitor', { match: {}, each: ['subject'], window: 'day', limit: '1' });
    for (let i = 0; i < 12; i += 1) {
      const rest = { workload: i % 2 ? 'chat' : 'report', subject: `v${i % 3}`, conversation: 'c1' };
      const { body } = await service.post('check-budget', check(`r${i}`, 1_000, rest));
      positions.push(body.position);
      if (i < 6) {
        const usage = {
          reservationId: body.reservation.id,
          outcome: 'succeeded',
          usage: { inputTokens: 1_000, outputTokens: 200 },
        };
        positions.push((await service.post('record-usage', usage)).body.position);
      }
    }
  });
  afterAll(async () => {
    await service.stop();
    await database.drop();
  });
  const last = () => positions.at(-1) ?? 0;

  it('a query sees what its caller has written', async () => {
    const { body } = await service.get(`budgets?after=${last()}`);
    expect(body.data.map((budget: { id: string }) => budget.id)).toEqual(['day', 'visitor']);
    // 6 charges of 0.002, 6 holds of 0.02148
    expect(body.data[0].current).toMatchObject({
      limit: '5',
      charged: '0.012',
      held: '0.12888',
      remaining: '4.85912',
    });
    expect((await service.get(`budgets/visitor/balances?after=${last()}`)).body.data).toHaveLength(3);
  });

  it('a position beyond the log is 400 at once', async () => {
    expect((await service.get('budgets?after=1000000')).body).toMatchObject({
      status: 400,
      code: 'position_ahead',
    });
  });

  it('spend is grouped as asked', async () => {
    const { body } = await service.get(`spend?by=workload&after=${last()}`);
    const rows = Object.fromEntries(
      body.data.map((row: { workload: string; charged: string; held: string }) => [
        row.workload,
        [row.charged, row.held],
      ]),
    );
    expect(rows).toEqual({ chat: ['0.006', '0.06444'], report: ['0.006', '0.06444'] });
    expect((await service.get('spend?by=colour')).status).toBe(400);
  });

  it('headroom is the check without asking: set-asides of others left out', async () => {
    const { body } = await service.get(
      `headroom?provider=anthropic&workload=chat&subject=v0&after=${last()}`,
    );
    const day = body.budgets.find((budget: { id: string }) => budget.id === 'day');
    // Reports have used 0.006 + 0.06444 of their 3.
    expect(day.remaining).toBe('1.92956');
    const visitor = body.budgets.find((budget: { id: string }) => budget.id === 'visitor');
    expect(body.largestAmount).toBe(visitor.remaining);
  });

  it('reservations, charges and requests are found', async () => {
    const held = await service.get(`reservations?state=held&after=${last()}&limit=4`);
    expect(held.body.data).toHaveLength(4);
    const more = await service.get(`reservations?state=held&limit=4&cursor=${held.body.nextCursor}`);
    expect(more.body.data).toHaveLength(2);
    const { body } = await service.get('requests/r0');
    expect(body.attempts[0]).toMatchObject({
      requestId: 'r0',
      state: 'confirmed',
      charge: { cost: '0.002' },
    });
    expect((await service.get(`charges/${body.attempts[0].charge.id}`)).status).toBe(200);
    expect((await service.get(`reservations/${body.attempts[0].reservationId}`)).body.state).toBe(
      'confirmed',
    );
    expect((await service.get('requests/nobody')).status).toBe(404);
    expect((await service.get('reservations?cursor=%%%')).status).toBe(400);
  });

  it('history as pages, as lines, and by filter', async () => {
    const all = await service.get('events', { accept: 'application/x-ndjson' });
    const lines = all.body.trim().split('\n');
    const pages: unknown[] = [];
    let cursor = '';
    do {
      const { body } = await service.get(`events?limit=7&after=${cursor}`);
      pages.push(...body.data);
      cursor = body.nextCursor ?? '';
    } while (cursor !== '');
    expect(lines.map((line: string) => JSON.parse(line))).toEqual(pages);
    const of = await service.get(`events?requestId=r0&limit=100`);
    expect(of.body.data.map((event: { type: string }) => event.type)).toEqual([
      'SpendEstimated',
      'SpendReserved',
      'UsageCharged',
    ]);
    const charged = await service.get('events?type=UsageCharged');
    expect(charged.body.data).toHaveLength(6);
  });

  it('a live feed resumes after the event it saw last, without gap or duplicate', async () => {
    const follow = async (lastId: number, count: number): Promise<number[]> => {
      const abort = new AbortController();
      const answer = await fetch(new URL('/v1/ledgers/main/events', service.url), {
        headers: { accept: 'text/event-stream', 'last-event-id': String(lastId) },
        signal: abort.signal,
      });
      const seen: number[] = [];
      let text = '';
      for await (const part of answer.body ?? []) {
        text += Buffer.from(part as Uint8Array).toString('utf8');
        seen.splice(0, seen.length, ...[...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id)));
        if (seen.length >= count) break;
      }
      abort.abort();
      return seen;
    };
    const first = await follow(3, 5);
    expect(first.slice(0, 5)).toEqual([4, 5, 6, 7, 8]);
    const live = follow(last(), 2);
    const { body } = await service.post('check-budget', check('live'));
    expect(await live).toEqual([body.position - 1, body.position]);
  });

  it('the state at a revision is what it was then', async () => {
    const position = positions[5] ?? 0;
    const { body } = await service.get(`state?revision=${position}`);
    expect(body).toMatchObject({ revision: position, totals: { charged: '0.006', held: '0' } });
    const day = body.budgets.find((budget: { id: string }) => budget.id === 'day');
    expect(day.buckets).toMatchObject([{ charged: '0.006', held: '0' }]);
    expect((await service.get('state?at=2020-01-01T00:00:00Z')).body).toMatchObject({ revision: -1 });
  });

  it('verifies, and finds one changed byte', async () => {
    const clean = await service.get(`verify?after=${last()}`);
    expect(clean.body).toMatchObject({ ok: true, faults: [] });
    expect(clean.body.totals.readModel).toEqual(clean.body.totals.fold);
    const client = new pg.Client({
      connectionString: database.url,
      options: `-c search_path=${database.schema}`,
    });
    await client.connect();
    await client.query(
      "UPDATE events SET body = convert_to(replace(convert_from(body, 'UTF8'), '\"cost\":\"0.002\"', '\"cost\":\"0.001\"'), 'UTF8') WHERE ledger = 'main' AND revision = $1",
      [positions[1]],
    );
    await client.end();
    const { body } = await service.get('verify');
    expect(body.ok).toBe(false);
    expect(body.faults).toEqual([`revision ${positions[1]} does not match its hash`]);
  });

  it('describes itself', async () => {
    const { body } = await service.get('/openapi.json');
    expect(body.openapi).toBe('3.1.0');
    expect(Object.keys(body.paths)).toContain('/v1/ledgers/{ledger}/check-budget');
    const references = [...JSON.stringify(body).matchAll(/"\$ref":"([^"]+)"/g)].map(
      ([, reference]) => reference ?? '',
    );
    const known = Object.keys(body.components.schemas).map((name) => `#/components/schemas/${name}`);
    expect(known).toEqual(expect.arrayContaining(references));
    expect(body.components.schemas.CheckBudget.required).toEqual(
      expect.arrayContaining(['requestId', 'account', 'model', 'estimate']),
    );
    expect((await service.get('/docs')).status).toBe(200);
    expect((await service.get('/readyz')).body).toMatchObject({ status: 'ok', database: 'ok', log: 'ok' });
    expect((await service.get('settings')).body).toMatchObject({ timezone: 'UTC', minOutputTokens: 4_096 });
    expect((await service.get('prices?provider=anthropic&model=haiku-4-5')).body.data).toMatchObject([
      { model: 'claude-haiku-4-5' },
    ]);
    expect((await service.get('/v1/ledgers')).body.data).toMatchObject([{ ledger: 'main' }]);
    expect(ACCOUNT.fingerprint).toHaveLength(64);
  });
});
