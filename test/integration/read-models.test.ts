import { AttemptQueries } from '../../src/read-models/spend/attempt-queries';
import { SpendQueries } from '../../src/read-models/spend/spend-queries';
import { BudgetQueries } from '../../src/read-models/budgets/budget-queries';
import { SettingsQueries } from '../../src/read-models/settings/settings-queries';
import { EventQueries } from '../../src/read-models/event-index/event-queries';
import { readTotals } from '../../src/read-models/totals';
import { openBench } from '../support/read-model-bench';
import type { ReadModelBench } from '../support/read-model-bench';
import {
  FINGERPRINT,
  START_MS,
  ScriptedLedger,
  budget,
  chargeIn,
  check,
  open,
  reservationIn,
  usage,
} from '../support/scripted-ledger';

let bench: ReadModelBench;
beforeAll(async () => {
  bench = await openBench();
});
afterEach(() => bench.clear());
afterAll(() => bench.close());

/** Projects everything the ledger holds. */
async function project(ledger: ScriptedLedger, batchSize?: number): Promise<void> {
  const projection = bench.process(ledger, batchSize === undefined ? {} : { batchSize });
  projection.follow('main');
  expect(await projection.waitFor('main', ledger.events.length - 1, 10_000)).toBe('seen');
  await projection.stop();
}

describe('attempts', () => {
  it('keep one row per attempt with every revision that touched it', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open());
    const reserved = ledger.run(check('r1', { subject: 'ann', conversation: 'c1', job: 'j1' }));
    const id = reservationIn(reserved);
    const charged = ledger.run(usage(id, 50_000, { providerRequestId: 'p1' }));
    ledger.run({
      type: 'CorrectCharge',
      chargeId: chargeIn(charged),
      correctionId: 'k1',
      amount: '0.04',
      reason: 'invoice',
      bodyHash: 'k1',
    });
    await project(ledger, 2);
    const attempts = await new AttemptQueries(bench.pool).request('main', 'r1');
    expect(attempts).toHaveLength(1);
    expect(attempts[0]).toMatchObject({
      state: 'confirmed',
      requestId: 'r1',
      attempt: 1,
      reservationId: id,
      account: { provider: 'anthropic', fingerprint: FINGERPRINT },
      model: 'sonnet',
      subject: 'ann',
      conversation: 'c1',
      job: 'j1',
      amount: '0.11',
      countedAt: '2026-11-30T10:00:00.000Z',
      day: '2026-11-30',
      charge: { id: chargeIn(charged), cost: '0.04', quality: 'confirmed', overrun: '0' },
    });
    const about = ledger.events.filter(({ type }) => type !== 'LedgerOpened' && type !== 'PriceListed');
    expect(attempts[0]?.revisions).toEqual(about.map(({ revision }) => revision));
  });

  it('casebook 13: a refusal is a row without reservation; casebook 15: its next attempt is another', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open());
    ledger.run(budget('tiny', { limit: '0.01' }));
    ledger.run(check('r1'));
    ledger.run(budget('tiny', { limit: '10' }));
    ledger.run(check('r1', { attempt: 2 }));
    await project(ledger);
    const attempts = await new AttemptQueries(bench.pool).request('main', 'r1');
    expect(attempts.map(({ state, code, attempt }) => ({ state, code, attempt }))).toEqual([
      { state: 'refused', code: 'budget_exceeded', attempt: 1 },
      { state: 'held', code: undefined, attempt: 2 },
    ]);
    expect(attempts[0]?.reasons?.[0]).toMatchObject({
      budget: 'tiny',
      limit: '0.01',
      charged: '0',
      held: '0',
    });
    expect(attempts[0]?.reservationId).toBeUndefined();
  });

  it('find reservations and charges by their ids, and pages of one state', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open());
    const ids = ['r1', 'r2', 'r3', 'r4', 'r5'].map((id) => reservationIn(ledger.run(check(id))));
    const first = ids[0] ?? '';
    const charge = chargeIn(ledger.run(usage(first, 10, { providerRequestId: 'p1' })));
    const second = chargeIn(ledger.run(usage(first, 20, { providerRequestId: 'p2' })));
    await project(ledger, 3);
    const queries = new AttemptQueries(bench.pool);
    expect(await queries.reservation('main', first)).toMatchObject({
      state: 'confirmed',
      charge: { id: charge },
    });
    expect(await queries.charge('main', charge)).toMatchObject({ reservationId: first, state: 'confirmed' });
    expect(await queries.charge('main', second)).toMatchObject({
      reservationId: first,
      state: 'charged',
      charge: { duplicateSend: true, providerRequestId: 'p2' },
    });
    expect(await queries.charge('main', charge.replace(/.$/, 'x'))).toBeUndefined();
    expect(await queries.reservation('main', 'rsv_1_000000000000')).toBeUndefined();
    const page = await queries.reservations('main', 'held', { limit: 3 });
    expect(page.data.map(({ requestId }) => requestId)).toEqual(['r5', 'r4', 'r3']);
    const next = await queries.reservations('main', 'held', { limit: 3, cursor: page.nextCursor });
    expect(next.data.map(({ requestId }) => requestId)).toEqual(['r2']);
    expect(next.nextCursor).toBeUndefined();
    await expect(queries.reservations('main', 'held', { cursor: 'x' })).rejects.toThrow('cursor');
    expect((await queries.reservations('main', undefined, {})).data).toHaveLength(5);
  });

  it('casebook 10: every hold ends visibly, by charge, release or expiry', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open());
    const [a, b] = [reservationIn(ledger.run(check('a'))), reservationIn(ledger.run(check('b')))];
    ledger.run(check('c', { ttlSeconds: 1 }));
    ledger.run({ type: 'ChangeSettings', settings: { onExpiry: 'release' } });
    ledger.run(check('d', { ttlSeconds: 1 }));
    ledger.run(usage(a, 10));
    ledger.run({ type: 'ReleaseReservation', reservationId: b });
    ledger.nowMs += 5_000;
    ledger.run({ type: 'ExpireDue', limit: 256 });
    await project(ledger, 4);
    const { data } = await new AttemptQueries(bench.pool).reservations('main', undefined, {});
    const states = data.map(({ requestId, state, charge }) => [requestId, state, charge?.cost]);
    expect(states).toEqual([
      ['d', 'expired-released', undefined],
      ['c', 'assumed', '0.11'],
      ['b', 'released', undefined],
      ['a', 'confirmed', '0.00201'],
    ]);
    const totals = await readTotals(bench.pool, 'main');
    expect(totals?.spend).toMatchObject({ held: 0n, heldReservations: 0, charged: 112_010_000n });
    expect(totals?.spend.chargedInCube).toBe(totals?.spend.charged);
  });
});

describe('spend', () => {
  it('casebook 25 and 26: counts in the day of the reservation, in the ledger timezone', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open('America/New_York'));
    ledger.nowMs = Date.parse('2026-12-01T04:59:00.000Z'); // 23:59 on 30 November there
    const late = reservationIn(ledger.run(check('r1', { ttlSeconds: 3_600 })));
    ledger.nowMs += 120_000;
    ledger.run(check('r2'));
    ledger.run(usage(late, 1_000));
    await project(ledger);
    const spend = new SpendQueries(bench.pool);
    const { data } = await spend.spend('main', { by: ['day'] });
    expect(data).toMatchObject([
      { day: '2026-11-30', charged: '0.003', held: '0', charges: 1, reservations: 1 },
      { day: '2026-12-01', charged: '0', held: '0.11', charges: 0, reservations: 1 },
    ]);
    const one = await spend.spend('main', { by: [], fromDay: '2026-12-01', toDay: '2026-12-02' });
    expect(one.data).toMatchObject([{ charged: '0', held: '0.11' }]);
  });

  it('gives the same sums by workload from the cube as by subject from the attempts', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open());
    ledger.run(budget('cap', { limit: '0.5' }));
    for (const [i, workload] of ['chat', 'report', 'chat', 'report', 'chat'].entries()) {
      const decision = ledger.run(check(`r${String(i)}`, { workload, subject: `s${String(i % 2)}` }));
      if (decision.kind !== 'accepted' || decision.answer.kind !== 'check-allowed') continue;
      if (i > 1) continue;
      ledger.run(usage(reservationIn(decision), 1_000 * (i + 1), { providerRequestId: 'p' }));
    }
    for (const id of ['x', 'y']) ledger.run(check(id, { workload: 'chat', subject: 's0' }));
    await project(ledger, 3);
    const spend = new SpendQueries(bench.pool);
    const byWorkload = await spend.spend('main', { by: ['workload'] });
    expect(byWorkload.data).toMatchObject([
      {
        workload: 'chat',
        charged: '0.003',
        held: '0.33',
        charges: 1,
        reservations: 4,
        refusals: 1,
        refusedAmount: '0.11',
      },
      { workload: 'report', charged: '0.004', held: '0.11', charges: 1, reservations: 2, refusals: 0 },
    ]);
    const bySubject = await spend.spend('main', { by: ['workload', 'subject'] });
    const sum = (
      rows: readonly { readonly charges: number; readonly reservations: number; readonly refusals: number }[],
    ) => rows.reduce((total, row) => total + row.charges + row.reservations * 100 + row.refusals * 10_000, 0);
    expect(sum(bySubject.data)).toBe(sum(byWorkload.data));
    expect(bySubject.data.map(({ workload, subject }) => `${String(workload)}/${String(subject)}`)).toEqual([
      'chat/s0',
      'report/s1',
    ]);
    const first = await spend.spend('main', { by: ['subject'], limit: 1 });
    const second = await spend.spend('main', { by: ['subject'], limit: 1, cursor: first.nextCursor });
    expect([first, second].map(({ data }) => data[0]?.subject)).toEqual(['s0', 's1']);
    expect(second.nextCursor).toBeUndefined();
  });

  it('replaces the usage of an assumption by what is reported later', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open());
    const id = reservationIn(ledger.run(check('r1', { ttlSeconds: 1 })));
    ledger.nowMs += 2_000;
    ledger.run({ type: 'ExpireDue', limit: 10 });
    ledger.run(usage(id, 7));
    await project(ledger, 5);
    const { data } = await new SpendQueries(bench.pool).spend('main', { by: ['model'] });
    expect(data).toEqual([
      {
        model: 'sonnet',
        charged: '0.002007',
        held: '0',
        charges: 1,
        reservations: 1,
        refusals: 0,
        refusedAmount: '0',
        unpriced: 0,
        usage: { inputTokens: 7, outputTokens: 1_000 },
      },
    ]);
  });
});

describe('budgets', () => {
  it('casebook 8 and 14: a budget defined in mid-window counts what its window holds, and lets it go once', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open());
    const [a, b] = [reservationIn(ledger.run(check('a'))), reservationIn(ledger.run(check('b')))];
    ledger.run(usage(a, 1_000));
    ledger.run(budget('day', { limit: '5' }));
    await project(ledger);
    const queries = new BudgetQueries(bench.pool);
    expect(await queries.budget('main', 'day', START_MS)).toMatchObject({
      budget: { id: 'day', limit: '5' },
      generation: 1,
      retired: false,
      current: {
        window: { kind: 'day', from: '2026-11-30T00:00:00.000Z', to: '2026-12-01T00:00:00.000Z' },
        limit: '5',
        charged: '0.003',
        held: '0.11',
        remaining: '4.887',
        resetsAt: '2026-12-01T00:00:00.000Z',
        setAsides: [],
      },
    });
    ledger.run({ type: 'ReleaseReservation', reservationId: b });
    await project(ledger);
    expect((await queries.budget('main', 'day', START_MS))?.current).toMatchObject({
      charged: '0.003',
      held: '0',
    });
    expect((await queries.budget('main', 'day', START_MS + 86_400_000))?.current).toMatchObject({
      charged: '0',
    });
  });

  it('does not take a hold out of a budget defined in a later window than its own', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open());
    const a = reservationIn(ledger.run(check('a', { ttlSeconds: 86_400 })));
    ledger.nowMs += 86_000_000; // the next day
    ledger.run(budget('day'));
    ledger.run({ type: 'ReleaseReservation', reservationId: a });
    await project(ledger);
    const { rows } = await bench.pool.query('SELECT * FROM budget_buckets WHERE held <> 0');
    expect(rows).toEqual([]);
  });

  it('has one balance a bucket with each, and sums over them', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open());
    ledger.run(
      budget('visitor', {
        each: ['subject'],
        limit: '1',
        setAsides: [{ match: { workload: 'report' }, amount: '0.5' }],
      }),
    );
    for (const subject of ['bob', 'ann']) ledger.run(check(`r-${subject}`, { subject }));
    ledger.run(check('r-none', { workload: 'report' }));
    await project(ledger);
    const queries = new BudgetQueries(bench.pool);
    expect((await queries.budget('main', 'visitor', START_MS))?.current).toMatchObject({
      limit: '3',
      held: '0.33',
      remaining: '2.67',
      buckets: 3,
      setAsides: [{ charged: '0', held: '0.11' }],
    });
    const page = await queries.balances('main', 'visitor', START_MS, { limit: 2 });
    expect(page?.data.map(({ bucket, held, remaining }) => [bucket, held, remaining])).toEqual([
      [{ subject: 'ann' }, '0.11', '0.89'],
      [{ subject: 'bob' }, '0.11', '0.89'],
    ]);
    const rest = await queries.balances('main', 'visitor', START_MS, { limit: 2, cursor: page?.nextCursor });
    expect(rest?.data.map(({ bucket }) => bucket)).toEqual([{ subject: null }]);
    const place = { id: 'visitor', generation: 1, window: page?.data[0]?.window ?? { kind: 'day' as const } };
    expect(
      await queries.bucketBalances('main', [
        { ...place, bucket: { subject: null } },
        { ...place, bucket: { subject: 'nobody' } },
      ]),
    ).toEqual([
      { charged: 0n, held: 110_000_000n, setAsides: [{ index: 0, charged: 0n, held: 110_000_000n }] },
      { charged: 0n, held: 0n, setAsides: [] },
    ]);
    expect(await queries.balances('main', 'nothing', START_MS, {})).toBeUndefined();
  });

  it('lists budgets by id, retired ones only when asked for', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open());
    for (const id of ['c', 'a', 'b']) ledger.run(budget(id));
    ledger.run({ type: 'RetireBudget', id: 'b' });
    await project(ledger);
    const queries = new BudgetQueries(bench.pool);
    const page = await queries.list('main', START_MS, { limit: 1 });
    expect(page.data.map((view) => view.budget.id)).toEqual(['a']);
    const next = await queries.list('main', START_MS, { limit: 1, cursor: page.nextCursor });
    expect(next.data.map((view) => view.budget.id)).toEqual(['c']);
    expect(next.nextCursor).toBeUndefined();
    const all = await queries.list('main', START_MS, { includeRetired: true });
    expect(all.data.map((view) => [view.budget.id, view.retired, view.current !== undefined])).toEqual([
      ['a', false, true],
      ['b', true, false],
      ['c', false, true],
    ]);
  });
});

describe('settings, prices and the index of events', () => {
  it('show the ledger as it is set', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open('Europe/Berlin'));
    ledger.run({ type: 'ChangeSettings', settings: { minOutputTokens: 100 } });
    ledger.run(check('r1'));
    const set = (model: string) =>
      ledger.run({ type: 'SetPrice', provider: 'p', model, rates: { inputTokens: '3' }, origin: 'operator' });
    set('m1');
    set('m2');
    ledger.run({ type: 'RetirePrice', provider: 'p', model: 'm1' });
    await project(ledger);
    const queries = new SettingsQueries(bench.pool);
    expect(await queries.settings('main')).toMatchObject({ timezone: 'Europe/Berlin', minOutputTokens: 100 });
    expect(await queries.settings('other')).toBeUndefined();
    expect((await queries.ledgers()).map(({ ledger: id }) => id)).toEqual(['main']);
    expect((await queries.overrides('main')).map(({ price }) => price.model)).toEqual(['m2']);
    expect((await queries.listed('main')).map(({ price }) => price.model)).toEqual(['sonnet']);
  });

  it('find events of a request, of a conversation, and of a type', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open());
    const a = reservationIn(ledger.run(check('a', { conversation: 'c1' })));
    ledger.run(check('b', { conversation: 'c2' }));
    ledger.run(check('c', { conversation: 'c1', reserve: false }));
    ledger.run(usage(a, 10));
    await project(ledger, 1);
    const queries = new EventQueries(bench.pool);
    const typesAt = (revisions: readonly number[]) =>
      revisions.map((revision) => ledger.events[revision]?.type);
    const ofRequest = await queries.places('main', { requestId: 'a' }, -1, 10);
    expect(ofRequest.kind === 'exact' && typesAt(ofRequest.revisions)).toEqual([
      'SpendEstimated',
      'SpendReserved',
      'UsageCharged',
    ]);
    const ofConversation = await queries.places('main', { conversation: 'c1' }, -1, 3);
    expect(ofConversation).toMatchObject({ kind: 'exact', more: true });
    expect(await queries.places('main', { type: 'UsageCharged' }, 2, 10)).toEqual({
      kind: 'ranges',
      ranges: [{ from: 3, to: 999 }],
      more: false,
    });
    expect(await queries.places('main', { type: 'BudgetRetired' }, -1, 10)).toMatchObject({ ranges: [] });
    const later = { fromMs: START_MS + 1 };
    expect(await queries.places('main', later, -1, 10)).toMatchObject({ ranges: [] });
  });
});
