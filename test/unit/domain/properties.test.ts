import fc from 'fast-check';
import { advance, evolve } from '../../../src/domain/evolve';
import { decide } from '../../../src/domain/decide';
import { UndoJournal } from '../../../src/domain/journal';
import { restoreState, serialiseState } from '../../../src/domain/snapshot';
import { LedgerSpec, budget, catalogue, check, usage } from './ledger-spec';

type Step =
  | { kind: 'check'; dollars: number; subject: string; workload: string; ttl: number }
  | { kind: 'use'; of: number; dollars: number; how: 'succeeded' | 'aborted' | 'failed' }
  | { kind: 'release' | 'extend'; of: number }
  | { kind: 'wait'; seconds: number }
  | { kind: 'define'; id: string; limit: number; each: boolean; aside: boolean; now: boolean }
  | { kind: 'retire'; id: string }
  | { kind: 'sweep' };

const cents = fc.integer({ min: 0, max: 300 }).map((n) => n / 100);
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('check' as const),
      dollars: cents,
      subject: fc.constantFrom('a', 'b'),
      workload: fc.constantFrom('chat', 'report'),
      ttl: fc.integer({ min: 1, max: 900 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('use' as const),
      of: fc.nat(20),
      dollars: cents,
      how: fc.constantFrom('succeeded' as const, 'aborted' as const, 'failed' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('release' as const, 'extend' as const), of: fc.nat(20) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      seconds: fc.constantFrom(1, 60, 601, 40_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('define' as const),
      id: fc.constantFrom('x', 'y'),
      limit: fc.integer({ min: 0, max: 9 }),
      each: fc.boolean(),
      aside: fc.boolean(),
      now: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('retire' as const), id: fc.constantFrom('x', 'y') }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('sweep' as const) }) },
);

function play(ledger: LedgerSpec, script: readonly Step[]): void {
  const held: string[] = [];
  script.forEach((step, i) => {
    const id = 'of' in step ? held[step.of % Math.max(1, held.length)] : undefined;
    switch (step.kind) {
      case 'check': {
        const { answer } = ledger.send(
          check(`r${i}`, step.dollars, {
            subject: step.subject,
            workload: step.workload,
            ttlSeconds: step.ttl,
          }),
        );
        if (answer?.kind === 'check-allowed' && answer.reservation) held.push(answer.reservation.id);
        return;
      }
      case 'use':
        if (id)
          ledger.send(
            usage(id, step.dollars, {
              outcome: step.how,
              usage: step.how === 'succeeded' ? { inputTokens: Math.round(step.dollars * 1e6) } : undefined,
            }),
          );
        return;
      case 'release':
        if (id) ledger.send({ type: 'ReleaseReservation', reservationId: id });
        return;
      case 'extend':
        if (id) ledger.send({ type: 'ExtendReservation', reservationId: id, ttlSeconds: 300 });
        return;
      case 'wait':
        ledger.later(step.seconds);
        return;
      case 'define': {
        const setAsides = step.aside
          ? [{ match: { workload: 'report' }, amount: String(Math.min(2, step.limit)) }]
          : [];
        ledger.define(
          budget(step.id, String(step.limit), { each: step.each ? ['subject'] : [], setAsides }),
          step.now ? 'now' : 'window',
        );
        return;
      }
      case 'retire':
        ledger.send({ type: 'RetireBudget', id: step.id });
        return;
      case 'sweep':
        ledger.send({ type: 'ExpireDue', limit: 2 });
    }
  });
}

describe('the decider, over any history', () => {
  const scripts = fc.tuple(
    fc.constantFrom('assume-spent' as const, 'release' as const),
    fc.array(steps, { maxLength: 60 }),
  );
  const each = (judge: (ledger: LedgerSpec) => void, numRuns = 150) => {
    fc.assert(
      fc.property(scripts, ([onExpiry, script]) => {
        const ledger = new LedgerSpec(undefined, { onExpiry });
        play(ledger, script);
        judge(ledger);
      }),
      { numRuns },
    );
  };

  it('the live state is the fold of its log, and survives a snapshot', () => {
    each((ledger) => {
      const { live, fresh } = ledger.fold();
      expect(live).toBe(fresh);
      expect(serialiseState(restoreState(live))).toBe(live);
    });
  });

  it('what a bucket holds is the sum of the reservations held in it, and nothing is below zero', () => {
    each((ledger) => {
      for (const state of ledger.state.budgets.values()) {
        if (state.retired) continue;
        for (const [key, window] of state.windows) {
          let holds = 0;
          for (const [name, bucket] of window.buckets) {
            const inIt = [...ledger.state.reservations.values()].filter((reservation) =>
              reservation.places.some(
                (p) =>
                  p.budget === state.id &&
                  p.generation === state.generation &&
                  p.window === key &&
                  p.bucket === name,
              ),
            );
            holds += inIt.length;
            expect(bucket.held).toBe(inIt.reduce((sum, reservation) => sum + reservation.amount, 0n));
            expect(bucket.charged >= 0n).toBe(true);
            for (const part of bucket.setAsides)
              expect(part.charged >= 0n && part.held >= 0n && part.charged <= bucket.charged).toBe(true);
          }
          expect(window.holds).toBe(holds);
        }
      }
    });
  });

  it('a budget’s numbers are what a definition at the end would open with', () => {
    each((ledger) => {
      for (const state of [...ledger.state.budgets.values()]) {
        if (state.retired || state.countedFrom >= 0) continue;
        const twin = { ...state.definition, id: 'twin' };
        const told = ledger.define(twin);
        const current = [...state.windows.values()].filter(
          (w) => (w.span.toMs ?? Infinity) > Date.parse(ledger.time),
        );
        const sums = current
          .flatMap((w) => [...w.buckets.values()].map((b) => `${b.charged}/${b.held}`))
          .filter((s) => s !== '0/0');
        const opened = ledger.state.budgets.get('twin');
        const twins = [...(opened?.windows.values() ?? [])]
          .flatMap((w) => [...w.buckets.values()].map((b) => `${b.charged}/${b.held}`))
          .filter((s) => s !== '0/0');
        expect(told.rejection).toBeUndefined();
        expect(twins.sort()).toEqual(sums.sort());
        ledger.send({ type: 'RetireBudget', id: 'twin' });
      }
    });
  });

  it('a journal undone leaves the state as it was (casebook 40)', () => {
    each((ledger) => {
      ledger.later(30);
      const before = serialiseState(ledger.state);
      const journal = new UndoJournal();
      const nowMs = Date.parse(ledger.time) + 700_000;
      advance(ledger.state, nowMs, journal);
      const commands = [
        check('undo', 0.5),
        { type: 'ExpireDue' as const, limit: 256 },
        { type: 'RetireBudget' as const, id: 'x' },
      ];
      for (const command of commands) {
        const decision = decide(command, ledger.state, { nowMs, catalogue, nonce: 'ffffffffffff' });
        if (decision.kind !== 'accepted') continue;
        for (const event of decision.events)
          evolve(ledger.state, event, { revision: ledger.state.revision + 1, atMs: nowMs }, journal);
      }
      journal.undoTo(0);
      expect(serialiseState(ledger.state)).toBe(before);
      expect(ledger.send(check('after', 0.01)).rejection).toBeUndefined();
    });
  });

  it('reservations never take a window over its limit', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(cents, fc.constantFrom('a', 'b')), { maxLength: 40 }), (asked) => {
        const ledger = new LedgerSpec();
        ledger.define(budget('all', '5'));
        ledger.define(budget('each', '2', { each: ['subject'] }));
        asked.forEach(([dollars, subject], i) => ledger.send(check(`r${i}`, dollars, { subject })));
        for (const { windows, limit } of ledger.state.budgets.values()) {
          for (const window of windows.values())
            for (const bucket of window.buckets.values()) expect(bucket.held <= limit).toBe(true);
        }
      }),
    );
  });
});
