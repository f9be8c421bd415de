import fc from 'fast-check';
import type { Command } from '../../src/domain/commands';
import { bucketKeyText } from '../../src/read-models/budgets/bucket-deltas';
import { SpendQueries } from '../../src/read-models/spend/spend-queries';
import { readTotals } from '../../src/read-models/totals';
import { openBench } from '../support/read-model-bench';
import type { ReadModelBench } from '../support/read-model-bench';
import { ScriptedLedger, budget, check, open, usage } from '../support/scripted-ledger';

let bench: ReadModelBench;
beforeAll(async () => {
  bench = await openBench();
});
afterAll(() => bench.close());

/** A step of a random history; numbers choose among what exists. */
type Step = readonly [kind: number, a: number, b: number, minutes: number];

const WORKLOADS = ['chat', 'report'];
const BUDGETS: readonly ((limit: string) => Command)[] = [
  (limit) => budget('all', { limit }),
  (limit) => budget('all', { limit, setAsides: [{ match: { workload: 'report' }, amount: '0.2' }] }),
  (limit) => budget('all', { limit, window: 'week' }),
  (limit) => budget('visitor', { limit, each: ['subject'], mode: 'warn' }),
  (limit) => budget('life', { limit, window: 'lifetime', match: { workload: 'report' } }),
  (limit) =>
    budget('sale', {
      limit,
      window: { from: '2026-11-30T00:00:00.000Z', to: '2026-12-01T06:00:00.000Z' },
      mode: 'warn',
    }),
  (limit) =>
    budget('sale', {
      limit,
      window: { from: '2026-11-30T00:00:00.000Z', to: '2026-12-03T06:00:00.000Z' },
      mode: 'warn',
    }),
  (limit) => budget('month', { limit, window: 'month', match: { model: 'sonnet' } }),
];

function play(steps: readonly Step[]): ScriptedLedger {
  const ledger = new ScriptedLedger();
  ledger.run(open('America/New_York'));
  for (const [i, [kind, a, b, minutes]] of steps.entries()) {
    ledger.nowMs += minutes * 60_000;
    const command = commandOf(ledger, i, kind, a, b);
    if (command) ledger.run(command);
  }
  // What is due by now has happened for the domain, recorded or not; read models see what is recorded.
  ledger.run({ type: 'ExpireDue', limit: 10_000 });
  return ledger;
}

function commandOf(
  ledger: ScriptedLedger,
  i: number,
  kind: number,
  a: number,
  b: number,
): Command | undefined {
  const reservations = [...ledger.state.reservations.keys()];
  const reservation = reservations[a % Math.max(reservations.length, 1)];
  const charges = [...ledger.state.charges.keys()];
  const charge = charges[a % Math.max(charges.length, 1)];
  if (kind < 5) {
    const workload = WORKLOADS[a % 2];
    const about = {
      inputTokens: 1_000 * b,
      subject: `s${String(a % 3)}`,
      ttlSeconds: 60 * (1 + (b % 90)),
      workload,
    };
    return check(`r${String(i)}`, { ...about, model: b % 5 === 0 ? 'unknown' : 'sonnet', reserve: kind > 0 });
  }
  if (kind < 9) {
    return reservation === undefined
      ? undefined
      : usage(reservation, b * 700, {
          providerRequestId: `p${String(b % 2)}`,
          ...(kind === 8 && { usage: undefined, outcome: 'aborted' }),
        });
  }
  if (kind === 9)
    return reservation === undefined ? undefined : { type: 'ReleaseReservation', reservationId: reservation };
  if (kind === 10)
    return reservation === undefined
      ? undefined
      : { type: 'ExtendReservation', reservationId: reservation, ttlSeconds: 60 * b + 1 };
  if (kind === 11) return { type: 'ExpireDue', limit: 1 + (a % 3) };
  if (kind === 12) return BUDGETS[a % BUDGETS.length]?.(String(1 + (b % 7)));
  if (kind === 13) return { type: 'RetireBudget', id: ['all', 'visitor', 'life'][a % 3] ?? 'all' };
  if (kind === 14)
    return { type: 'ChangeSettings', settings: { onExpiry: a % 2 === 0 ? 'release' : 'assume-spent' } };
  if (charge === undefined) return undefined;
  const corrected = {
    chargeId: charge,
    correctionId: `k${String(i)}`,
    amount: `0.0${String(b % 10)}`,
    reason: 'r',
  };
  return { type: 'CorrectCharge', ...corrected, bodyHash: `k${String(i)}` };
}

/** budget/window/bucket/part → [charged, held] as the domain's fold has it. */
function expectedBuckets(ledger: ScriptedLedger): Map<string, readonly [bigint, bigint]> {
  const expected = new Map<string, readonly [bigint, bigint]>();
  for (const { id, generation, windows, retired } of ledger.state.budgets.values()) {
    if (retired) continue;
    for (const [window, { buckets }] of windows) {
      for (const { values, charged, held, setAsides } of buckets.values()) {
        const key = `${id} ${String(generation)} ${String(window)} ${bucketKeyText(values)}`;
        expected.set(`${key} -1`, [charged, held]);
        for (const [i, part] of setAsides.entries())
          expected.set(`${key} ${String(i)}`, [part.charged, part.held]);
      }
    }
  }
  return expected;
}

async function storedBuckets(): Promise<Map<string, readonly [bigint, bigint]>> {
  const { rows } = await bench.pool.query<Record<string, string>>('SELECT * FROM budget_buckets');
  return new Map(
    rows.map((row) => [
      ['budget', 'generation', 'window_key', 'bucket_key', 'part'].map((name) => String(row[name])).join(' '),
      [BigInt(row['charged'] ?? ''), BigInt(row['held'] ?? '')] as const,
    ]),
  );
}

describe('read models after any sequence of decisions', () => {
  const step = fc.tuple(
    fc.integer({ min: 0, max: 15 }),
    fc.nat(40),
    fc.nat(90),
    fc.oneof({ weight: 4, arbitrary: fc.nat(30) }, { weight: 1, arbitrary: fc.nat(900) }),
  );

  it('casebook 10, 11, 14: hold exactly what the held reservations sum to, everywhere', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 20, maxLength: 120 }),
        fc.integer({ min: 1, max: 40 }),
        async (steps, batchSize) => {
          await bench.clear();
          const ledger = play(steps);
          const projection = bench.process(ledger, { batchSize });
          projection.follow('main');
          expect(await projection.waitFor('main', ledger.events.length - 1, 20_000)).toBe('seen');
          const stored = await storedBuckets();
          for (const [place, [charged, held]] of expectedBuckets(ledger)) {
            expect([place, ...(stored.get(place) ?? [0n, 0n])]).toEqual([place, charged, held]);
          }
          for (const [place, [, held]] of stored) {
            if (!expectedBuckets(ledger).has(place)) expect([place, held]).toEqual([place, 0n]);
          }
          await compareSpend(ledger);
        },
      ),
      { numRuns: 40 },
    );
  }, 120_000);
});

async function compareSpend(ledger: ScriptedLedger): Promise<void> {
  const { reservations, charges } = ledger.state;
  const held = [...reservations.values()].filter(({ status }) => status === 'held');
  const charged = [...charges.values()].reduce((sum, { cost }) => sum + cost, 0n);
  const totals = await readTotals(bench.pool, 'main');
  expect(totals?.spend).toMatchObject({
    charged,
    chargedInCube: charged,
    held: held.reduce((sum, { amount }) => sum + amount, 0n),
    heldReservations: held.length,
  });
  const { rows } = await bench.pool.query<{ reservation_id: string; state: string }>(
    "SELECT reservation_id, state FROM attempts WHERE reservation_id IS NOT NULL AND state <> 'charged'",
  );
  expect(new Map(rows.map((row) => [row.reservation_id, row.state]))).toEqual(
    new Map([...reservations].map(([id, { status }]) => [id, status])),
  );
  const spend = new SpendQueries(bench.pool);
  const cube = await spend.spend('main', { by: ['day', 'model', 'workload'] });
  const attempts = await spend.spend('main', { by: ['day', 'model', 'workload', 'subject'], limit: 1_000 });
  const sums = new Map<string, { charged: number; charges: number; input: number; refusals: number }>();
  for (const { day, model, workload, ...group } of attempts.data) {
    const key = [day, model, workload].join();
    const sum = sums.get(key) ?? { charged: 0, charges: 0, input: 0, refusals: 0 };
    sum.charged += Number(group.charged) * 1e9;
    sum.charges += group.charges;
    sum.input += group.usage.inputTokens ?? 0;
    sum.refusals += group.refusals;
    sums.set(key, sum);
  }
  for (const { day, model, workload, charged: cost, charges: count, usage: used, refusals } of cube.data) {
    const sum = sums.get([day, model, workload].join());
    expect([Math.round(sum?.charged ?? 0), sum?.charges, sum?.input, sum?.refusals]).toEqual([
      Math.round(Number(cost) * 1e9),
      count,
      used.inputTokens ?? 0,
      refusals,
    ]);
  }
}
