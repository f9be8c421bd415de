import pg from 'pg';
import type { Recorded } from '../../src/domain/events';
import { evolve } from '../../src/domain/evolve';
import { NO_JOURNAL } from '../../src/domain/journal';
import { initialState } from '../../src/domain/state';
import { stateView } from '../../src/queries/history/state-view';
import { createTestDatabase } from '../support/database';
import type { TestDatabase } from '../support/database';
import { FINGERPRINT, ScriptedLedger, check, open, reservationIn, usage } from '../support/scripted-ledger';
import { storeLog } from './reads-log';
import { EventStream, startService } from './reads-service';
import type { ReadsService, Reply } from './reads-service';

const ACCOUNT = { provider: 'anthropic', fingerprint: FINGERPRINT };
const MODEL = 'claude-haiku-4-5';
const BASE = '/v1/ledgers/shop';

let database: TestDatabase;
let service: ReadsService;
let sql: pg.Client;

const positionOf = ({ body }: Reply): number => Number(body['position']);
const dataOf = <T = Recorded>({ body }: Reply): T[] => body['data'] as T[];

/** A check that must pass, or its reply. */
const reserve = (requestId: string, rest: object = {}, base = BASE): Promise<Reply> =>
  service.send('POST', `${base}/check-budget`, {
    requestId,
    account: ACCOUNT,
    model: MODEL,
    workload: 'chat',
    conversation: 'c-1',
    subject: 'v-1',
    estimate: { inputTokens: 100_000 },
    ...rest,
  });

const idOf = ({ body }: Reply): string => (body['reservation'] as { id: string }).id;

const record = (reservationId: string, base = BASE): Promise<Reply> =>
  service.send('POST', `${base}/record-usage`, {
    reservationId,
    outcome: 'succeeded',
    usage: { inputTokens: 100_000, outputTokens: 1_000 },
  });

async function everything(base: string): Promise<Recorded[]> {
  const all: Recorded[] = [];
  let next = '';
  for (;;) {
    const page = await service.get(`${base}/events?limit=7${next}`);
    all.push(...dataOf(page));
    if (page.body['nextCursor'] === undefined) return all;
    next = `&after=${page.body['nextCursor'] as string}`;
  }
}

/** Two Berlin days around the end of summer time, which has 25 hours; charges at their edges. */
function berlin(): ScriptedLedger {
  const script = new ScriptedLedger('berlin');
  script.nowMs = Date.parse('2026-10-20T00:00:00Z');
  script.run(open('Europe/Berlin'));
  const moments: [string, number][] = [
    ['2026-10-24T21:59:59.000Z', 1_000_000],
    ['2026-10-24T22:00:00.000Z', 2_000_000],
    ['2026-10-25T22:59:59.000Z', 4_000_000],
    ['2026-10-25T23:00:00.000Z', 8_000_000],
  ];
  for (const [at, tokens] of moments) {
    script.nowMs = Date.parse(at);
    script.run(usage(reservationIn(script.run(check(at))), tokens));
  }
  return script;
}

beforeAll(async () => {
  database = await createTestDatabase();
  await storeLog(database, berlin());
  service = await startService(database);
  sql = new pg.Client({ connectionString: database.url, options: `-c search_path=${database.schema}` });
  await sql.connect();
  await service.send('PUT', BASE, {});
  await service.send('PUT', `${BASE}/budgets/all-day`, {
    match: {},
    window: 'day',
    limit: '5',
    setAsides: [{ match: { workload: 'report' }, amount: '3' }],
  });
  await service.send('PUT', `${BASE}/budgets/haiku`, { match: { model: MODEL }, window: 'day', limit: '4' });
  await service.send('PUT', `${BASE}/budgets/visitor`, {
    match: {},
    each: ['subject'],
    window: 'day',
    limit: '3',
  });
}, 60_000);

afterAll(async () => {
  await sql.end();
  await service.stop();
  await database.drop();
});

describe('reading one’s own writes', () => {
  test('a query that names the position of a command has seen it', async () => {
    const allowed = await reserve('own-1', { subject: 'own' });
    expect(allowed.status).toBe(200);
    const balances = await service.get(`${BASE}/budgets/visitor/balances?after=${positionOf(allowed)}`);
    const { amount } = allowed.body['reservation'] as { amount: string };
    expect(dataOf<object>(balances)).toContainEqual(
      expect.objectContaining({ bucket: { subject: 'own' }, charged: '0', held: amount, limit: '3' }),
    );
    const charged = await record(idOf(allowed));
    const reservation = await service.get(
      `${BASE}/reservations/${idOf(allowed)}?after=${positionOf(charged)}`,
    );
    expect(reservation.body).toMatchObject({ id: idOf(allowed), state: 'confirmed', requestId: 'own-1' });
    const charge = await service.get(`${BASE}/charges/${String(charged.body['chargeId'])}`);
    expect(charge.body).toMatchObject({
      id: charged.body['chargeId'],
      charged: '0.105',
      quality: 'confirmed',
    });
    const request = await service.get(`${BASE}/requests/own-1`);
    expect(request.body['attempts']).toHaveLength(1);
  });

  test('a position beyond the log’s head is refused at once', async () => {
    const { status, body } = await service.get(`${BASE}/spend?after=1000000`);
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 'position_ahead', position: 1_000_000 });
  });

  test('events of a request are complete as soon as its command was answered', async () => {
    const allowed = await reserve('own-2');
    const listed = dataOf(await service.get(`${BASE}/events?requestId=own-2`));
    expect(listed.map(({ type }) => type)).toEqual(['SpendEstimated', 'SpendReserved']);
    expect(listed.at(-1)?.revision).toBe(positionOf(allowed));
    const released = await service.send('POST', `${BASE}/reservations/${idOf(allowed)}/release`);
    expect(released.status).toBe(200);
    const types = dataOf(await service.get(`${BASE}/events?requestId=own-2&type=ReservationReleased`));
    expect(types.map(({ revision }) => revision)).toEqual([positionOf(released)]);
  });
});

describe('bad questions', () => {
  test('an unknown ledger is a 404 wherever it is asked for', async () => {
    const paths = [
      'settings',
      'reservations',
      'reservations/rsv_1_000000000000',
      'charges/chg_1_000000000000',
      'requests/r',
      'budgets',
      'budgets/b',
      'budgets/b/balances',
      'headroom',
      'spend',
      'prices',
      'events',
      'state',
      'verify',
    ];
    for (const path of paths) {
      const { status, body } = await service.get(`/v1/ledgers/nobody/${path}`);
      expect([path, status, body['code']]).toEqual([path, 404, 'ledger_not_found']);
    }
    const stream = await fetch(`${service.url}/v1/ledgers/nobody/events`, {
      headers: { accept: 'text/event-stream' },
    });
    expect(stream.status).toBe(404);
  });

  test('every fault is listed, and no value is echoed', async () => {
    const key = 'sk-ant-secret';
    const { status, body } = await service.get(`${BASE}/headroom?account=${key}&provider=Not%20A%20Slug&x=1`);
    expect(status).toBe(400);
    expect(JSON.stringify(body)).not.toContain(key);
    expect((body['faults'] as { path: string }[]).map(({ path }) => path)).toEqual(
      expect.arrayContaining(['account', 'provider']),
    );
    const spend = await service.get(`${BASE}/spend?by=day,colour&from=yesterday&limit=0&nonsense=1`);
    expect((spend.body['faults'] as { path: string }[]).map(({ path }) => path).sort()).toEqual([
      'by.1',
      'from',
      'limit',
      'nonsense',
    ]);
  });

  test('limits outside 1 to 1,000 and cursors that are not ours are 400', async () => {
    for (const query of ['limit=0', 'limit=1001', 'limit=1e2', 'limit=', 'cursor=nonsense', 'after=-1'])
      expect([query, (await service.get(`${BASE}/budgets?${query}`)).status]).toEqual([query, 400]);
  });

  test('pages of budgets follow each other by cursor', async () => {
    const first = await service.get(`${BASE}/budgets?limit=2`);
    expect(dataOf<{ id: string }>(first).map(({ id }) => id)).toEqual(['all-day', 'haiku']);
    const second = await service.get(`${BASE}/budgets?limit=2&cursor=${String(first.body['nextCursor'])}`);
    expect(dataOf<{ id: string }>(second).map(({ id }) => id)).toEqual(['visitor']);
    expect(second.body['nextCursor']).toBeUndefined();
  });
});

describe('headroom', () => {
  test('shows what is left without what is set aside for others, in every spelling of the model', async () => {
    const base = '/v1/ledgers/roomy';
    await service.send('PUT', base, {});
    await service.send('PUT', `${base}/budgets/all-day`, {
      match: {},
      window: 'day',
      limit: '5',
      setAsides: [{ match: { workload: 'report' }, amount: '3' }],
    });
    const defined = await service.send('PUT', `${base}/budgets/haiku`, {
      match: { model: MODEL },
      window: 'day',
      limit: '1.5',
    });
    const room = `${base}/headroom?provider=anthropic&account=${FINGERPRINT}&after=${positionOf(defined)}`;
    const chat = await service.get(`${room}&model=claude-haiku-4-5-20251001&workload=chat`);
    expect(chat.body).toMatchObject({ largestAmount: '1.5', enforcement: 'enforce' });
    expect((chat.body['budgets'] as object[]).map((budget) => budget)).toMatchObject([
      { id: 'all-day', limit: '5', charged: '0', held: '0', remaining: '2' },
      { id: 'haiku', limit: '1.5', remaining: '1.5' },
    ]);
    const other = await service.get(`${room}&model=claude-sonnet-4-5&workload=chat`);
    expect(other.body['largestAmount']).toBe('2');
    const report = await service.get(`${room}&model=claude-sonnet-4-5&workload=report`);
    expect(report.body['largestAmount']).toBe('5');
    const allowed = await reserve('room-1', { estimate: { inputTokens: 500_000 } }, base);
    const { amount } = allowed.body['reservation'] as { amount: string };
    const after = await service.get(`${room}&model=${MODEL}&workload=chat&after=${positionOf(allowed)}`);
    expect(amount).toBe('0.52048');
    expect(after.status).toBe(400); // after twice: one question, one position
    const left = await service.get(
      `${base}/headroom?provider=anthropic&model=${MODEL}&workload=chat&after=${positionOf(allowed)}`,
    );
    expect(left.body['largestAmount']).toBe('0.97952');
  });

  test('without a matching budget nothing bounds the amount', async () => {
    const base = '/v1/ledgers/free';
    const opened = await service.send('PUT', base, {});
    const { body } = await service.get(`${base}/headroom?workload=chat&after=${positionOf(opened)}`);
    expect(body).toEqual({ budgets: [], unbudgeted: true, enforcement: 'enforce' });
  });
});

describe('history', () => {
  test('NDJSON is the JSON pages, byte for byte what is stored', async () => {
    const pages = await everything(BASE);
    const answer = await fetch(`${service.url}${BASE}/events`, {
      headers: { accept: 'application/x-ndjson' },
    });
    expect(answer.headers.get('content-type')).toContain('application/x-ndjson');
    const lines = (await answer.text()).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(pages);
    expect(pages.map(({ revision }) => revision)).toEqual(pages.map((_, i) => i));
    const { rows } = await sql.query<{ text: string }>(
      `SELECT convert_from(body, 'UTF8') AS text FROM events WHERE ledger = 'shop' ORDER BY revision`,
    );
    expect(rows.map(({ text }) => text).slice(0, lines.length)).toEqual(lines);
    const raw = await (await fetch(`${service.url}${BASE}/events?limit=2`)).text();
    expect(raw).toBe(`{"data":[${lines[0] ?? ''},${lines[1] ?? ''}],"nextCursor":"1"}`);
  });

  test('filters by type and time meet exactly what they name', async () => {
    const all = await everything(BASE);
    const defined = dataOf(await service.get(`${BASE}/events?type=BudgetDefined`));
    expect(defined).toEqual(all.filter(({ type }) => type === 'BudgetDefined'));
    const from = all[3]?.at ?? '';
    const to = all.at(-1)?.at ?? '';
    const between = dataOf(
      await service.get(`${BASE}/events?limit=1000&from=${from}&to=${encodeURIComponent(to)}`),
    );
    expect(between).toEqual(all.filter(({ at }) => at >= from && at < to));
  });

  test('a live stream cut off anywhere resumes without gap or duplicate', async () => {
    const base = '/v1/ledgers/live';
    await service.send('PUT', base, {});
    const url = `${service.url}${base}/events`;
    const first = await EventStream.open(url);
    const opened = await first.take(1);
    expect(opened.map(({ id, event }) => [id, event])).toEqual([[0, 'LedgerOpened']]);
    const writing = Promise.all(Array.from({ length: 20 }, (_, i) => reserve(`live-${String(i)}`, {}, base)));
    const seen = [...opened, ...(await first.take(7))];
    first.close();
    await writing;
    let last = seen.at(-1)?.id;
    while (seen.length < 40) {
      const again = await EventStream.open(`${url}?after=0`, last);
      seen.push(...(await again.take(Math.min(11, 40 - seen.length))));
      again.close();
      last = seen.at(-1)?.id;
    }
    expect(seen.map(({ id }) => id)).toEqual(seen.map((_, i) => i));
    const stored = (await everything(base)).slice(0, seen.length);
    expect(seen.map(({ data }) => data)).toEqual(stored);
  });

  test('a live stream of one conversation has everything about it, also what does not name it', async () => {
    const base = '/v1/ledgers/talks';
    await service.send('PUT', base, {});
    const old = await reserve('old', { conversation: 'mine' }, base);
    await service.send('POST', `${base}/reservations/${idOf(old)}/release`);
    const stream = await EventStream.open(`${service.url}${base}/events?conversation=mine`);
    const before = await stream.take(3);
    const [mine, other] = [
      await reserve('mine', { conversation: 'mine' }, base),
      await reserve('other', { conversation: 'other' }, base),
    ];
    await service.send('POST', `${base}/reservations/${idOf(other)}/release`);
    await service.send('POST', `${base}/reservations/${idOf(mine)}/release`);
    const live = await stream.take(3);
    stream.close();
    const kinds = [...before, ...live].map(({ event }) => event);
    const each = ['SpendEstimated', 'SpendReserved', 'ReservationReleased'];
    expect(kinds).toEqual([...each, ...each]);
    const listed = dataOf(await service.get(`${base}/events?conversation=mine`));
    expect([...before, ...live].map(({ id }) => id)).toEqual(listed.map(({ revision }) => revision));
  });

  test('a live stream that has seen more than the log holds is told so', async () => {
    const stream = await EventStream.open(`${service.url}${BASE}/events`, 999_999);
    expect(stream.status).toBe(400);
    stream.close();
  });
});

describe('a second process on the same database', () => {
  test('sees what the first was told was done, live and by position, and stops with a stream open', async () => {
    const second = await startService(database);
    const base = '/v1/ledgers/two';
    const opened = await service.send('PUT', base, {});
    const stream = await EventStream.open(`${second.url}${base}/events`);
    expect((await stream.take(1)).map(({ id }) => id)).toEqual([0]);
    const allowed = await reserve('across', {}, base);
    await stream.take(positionOf(allowed));
    const there = await second.get(`${base}/reservations/${idOf(allowed)}?after=${positionOf(allowed)}`);
    expect(there.body).toMatchObject({ state: 'held', id: idOf(allowed) });
    expect((await second.get(`${base}/verify?after=${positionOf(opened)}`)).body['ok']).toBe(true);
    await second.stop();
    await expect(stream.take(1)).rejects.toThrow();
  }, 30_000);
});

describe('the ledger as it stood', () => {
  test('the state in the middle is the fold of the events up to there', async () => {
    const held = await reserve('middle', { subject: 'v-2' });
    const charged = await record(idOf(held));
    const events = await everything(BASE);
    for (const revision of [2, positionOf(held), positionOf(charged)]) {
      const state = initialState('shop');
      for (const event of events.slice(0, revision + 1)) {
        evolve(state, event, { revision: event.revision, atMs: Date.parse(event.at) }, NO_JOURNAL);
      }
      const { status, body } = await service.get(`${BASE}/state?revision=${String(revision)}`);
      expect(status).toBe(200);
      expect(body).toEqual(JSON.parse(JSON.stringify(stateView(state))));
    }
    const at = events[positionOf(held)]?.at ?? '';
    const asked = await service.get(`${BASE}/state?at=${encodeURIComponent(at)}`);
    expect(asked.body).toMatchObject({ revision: positionOf(held), at });
    const { id } = held.body['reservation'] as { id: string };
    expect((asked.body['reservations'] as { id: string }[]).map((open) => open.id)).toContain(id);
  });

  test('before the ledger was opened it is empty, and beyond its head a position is ahead', async () => {
    const before = await service.get(`${BASE}/state?at=2001-01-01T00:00:00Z`);
    expect(before.body).toMatchObject({ revision: -1, budgets: [], totals: { charged: '0', held: '0' } });
    const ahead = await service.get(`${BASE}/state?revision=999999`);
    expect([ahead.status, ahead.body['code']]).toEqual([400, 'position_ahead']);
    const both = await service.get(`${BASE}/state?revision=1&at=2026-01-01T00:00:00Z`);
    expect(both.status).toBe(400);
  });
});

describe('verify', () => {
  test('a ledger that nobody touched verifies, and both sums agree', async () => {
    const last = await reserve('verified');
    const { status, body } = await service.get(`${BASE}/verify?after=${String(positionOf(last))}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ ok: true, faults: [], faultCount: 0 });
    const head = body['head'] as { revision: number; hash: string };
    const events = await everything(BASE);
    expect(head).toEqual({ revision: events.length - 1, hash: events.at(-1)?.metadata.hash });
    expect(body['events']).toBe(events.length);
    const { readModel, fold } = body['totals'] as Record<string, unknown>;
    expect(readModel).toEqual(fold);
    expect(fold).toMatchObject({ position: head.revision });
  });

  test('one changed byte in the log is found, and where', async () => {
    const [target] = dataOf(await service.get(`${BASE}/events?type=SpendReserved&limit=1`));
    const revision = target?.revision ?? -1;
    const { rows } = await sql.query<{ body: Buffer }>(
      `SELECT body FROM events WHERE ledger = 'shop' AND revision = $1`,
      [revision],
    );
    await sql.query(
      `UPDATE events SET body = overlay(body PLACING '9'::bytea FROM position('"amount":"'::bytea IN body) + 10 FOR 1)
        WHERE ledger = 'shop' AND revision = $1`,
      [revision],
    );
    const { body } = await service.get(`${BASE}/verify`);
    expect(body['ok']).toBe(false);
    expect(body['faults']).toEqual([`revision ${String(revision)} does not match its hash`]);
    await sql.query(`UPDATE events SET body = $2 WHERE ledger = 'shop' AND revision = $1`, [
      revision,
      rows[0]?.body,
    ]);
    expect((await service.get(`${BASE}/verify`)).body['ok']).toBe(true);
  });

  test('a read model that says something else than the log is found', async () => {
    await sql.query(
      `UPDATE budget_buckets SET charged = charged + 1 WHERE ledger = 'shop' AND budget = 'haiku'`,
    );
    const { body } = await service.get(`${BASE}/verify`);
    expect(body['ok']).toBe(false);
    expect(body['faults']).toEqual([expect.stringContaining('budget haiku')]);
    await sql.query(
      `UPDATE budget_buckets SET charged = charged - 1 WHERE ledger = 'shop' AND budget = 'haiku'`,
    );
  });
});

describe('spend', () => {
  test('casebook 26: a day of 25 hours counts from its own midnight to the next', async () => {
    const { body } = await service.get('/v1/ledgers/berlin/spend?by=day&from=2026-10-24&to=2026-10-27');
    expect(body['timezone']).toBe('Europe/Berlin');
    expect(
      dataOf<Record<string, unknown>>({ status: 200, body }).map(({ day, charged }) => [day, charged]),
    ).toEqual([
      ['2026-10-24', '1.002'],
      ['2026-10-25', '6.004'],
      ['2026-10-26', '8.002'],
    ]);
    const moments = await service.get(
      '/v1/ledgers/berlin/spend?by=day&from=2026-10-24T22:00:00Z&to=2026-10-25T23:00:00Z',
    );
    expect(dataOf<Record<string, unknown>>(moments).map(({ day }) => day)).toEqual(['2026-10-25']);
    const whole = await service.get('/v1/ledgers/berlin/spend');
    expect(dataOf<Record<string, unknown>>(whole).map(({ charged }) => charged)).toEqual(['15.008']);
  });
});

describe('what the service says of itself', () => {
  test('it lives, and is ready with database, log and projections', async () => {
    expect(await service.get('/livez')).toEqual({ status: 200, body: { status: 'ok' } });
    const { status, body } = await service.get('/readyz');
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: 'ok', database: 'ok', log: 'ok' });
    const ledgers = (body['projections'] as { ledger: string }[]).map(({ ledger }) => ledger);
    expect(ledgers).toEqual(expect.arrayContaining(['main', 'berlin', 'shop']));
  });

  test('ledgers, settings and prices are told', async () => {
    const ledgers = dataOf<{ ledger: string }>(await service.get('/v1/ledgers'));
    expect(ledgers.map(({ ledger }) => ledger)).toEqual(expect.arrayContaining(['berlin', 'main', 'shop']));
    const settings = await service.get('/v1/ledgers/berlin/settings');
    expect(settings.body).toMatchObject({ timezone: 'Europe/Berlin', minOutputTokens: 4_096 });
    const prices = await service.get(`${BASE}/prices?provider=anthropic&model=${MODEL}&limit=1`);
    expect(dataOf(prices)).toMatchObject([
      { provider: 'anthropic', model: MODEL, source: 'catalogue', rates: { inputTokens: '1' } },
    ]);
  });
});
