import { LedgerSpec, budget, check, usage } from './ledger-spec';
import type { Stored } from './ledger-spec';

const alerts = (events: readonly Stored[]) =>
  events.flatMap((event) => (event.type === 'AlertRaised' ? [event.data.threshold] : []));

describe('budgets', () => {
  it('one defined mid-window counts what its window already holds: 4.00 by noon leaves 1.00 of 5.00', () => {
    const ledger = new LedgerSpec();
    const settled = ledger.reserve(check('r1', 3));
    ledger.send(usage(settled, 2.5));
    const held = ledger.reserve(check('r2', 1.5, { subject: 'a' }));
    const told = ledger.define(budget('day', '5'));
    expect(told.events[0]?.data).toMatchObject({ opening: [{ charged: '2.5', held: '1.5' }] });
    expect(ledger.send(check('r3', 1.000001)).answer?.kind).toBe('check-refused');
    expect(ledger.send(check('r4', 1)).answer?.kind).toBe('check-allowed');
    ledger.send(usage(held, 0.1));
    expect(ledger.used('day')).toEqual({ charged: '2.6', held: '1' });
  });

  it('openings are kept per bucket and set-aside', () => {
    const ledger = new LedgerSpec();
    ledger.reserve(check('r1', 1, { subject: 'a', workload: 'report' }));
    ledger.reserve(check('r2', 2, { subject: 'b' }));
    ledger.define(
      budget('v', '5', { each: ['subject'], setAsides: [{ match: { workload: 'report' }, amount: '3' }] }),
    );
    expect(ledger.send(check('r3', 2, { subject: 'a' })).answer?.kind).toBe('check-allowed');
    expect(ledger.send(check('r4', 0.1, { subject: 'a' })).answer?.kind).toBe('check-refused');
    expect(ledger.send(check('r5', 0.1, { subject: 'b' })).answer?.kind).toBe('check-refused');
    expect(ledger.send(check('r6', 3, { subject: 'b', workload: 'report' })).answer?.kind).toBe(
      'check-allowed',
    );
  });

  it('countFrom now starts at zero, and what came before never counts there, amended or not', () => {
    const ledger = new LedgerSpec();
    const before = ledger.reserve(check('r1', 4));
    ledger.define(budget('day', '5'), 'now');
    expect(ledger.used('day')).toBeUndefined();
    ledger.reserve(check('r2', 1));
    ledger.define(budget('day', '5', { setAsides: [{ match: { workload: 'x' }, amount: '1' }] }), 'now');
    expect(ledger.used('day')).toEqual({ charged: '0', held: '1' });
    ledger.send(usage(before, 3));
    expect(ledger.used('day')).toEqual({ charged: '0', held: '1' });
  });

  it('yesterday’s spending is not today’s (casebook 8)', () => {
    const ledger = new LedgerSpec();
    ledger.reserve(check('r1', 4));
    ledger.later(86_400);
    ledger.define(budget('day', '5'));
    expect(ledger.send(check('r2', 5)).answer?.kind).toBe('check-allowed');
  });

  it('days, weeks and months begin anew; fixed windows and lifetimes never do', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '1', { match: { workload: 'day' } }));
    ledger.define(budget('life', '1', { match: { workload: 'life' }, window: 'lifetime' }));
    ledger.define(
      budget('fixed', '1', {
        match: { workload: 'fixed' },
        window: { from: '2026-11-30T00:00:00.000Z', to: '2027-11-30T00:00:00.000Z' },
      }),
    );
    const all = (id: string) =>
      ['day', 'life', 'fixed'].map(
        (workload) => ledger.send(check(`${id}-${workload}`, 1, { workload })).answer?.kind,
      );
    expect(all('a')).toEqual(['check-allowed', 'check-allowed', 'check-allowed']);
    ledger.later(86_400 * 40);
    expect(all('b')).toEqual(['check-allowed', 'check-refused', 'check-refused']);
  });

  it('a fixed window matches nothing before it begins, and refuses after it ended until amended or retired', () => {
    const ledger = new LedgerSpec();
    const fixed = (to: string) => budget('fixed', '1', { window: { from: '2026-12-01T00:00:00.000Z', to } });
    ledger.define(fixed('2026-12-02T00:00:00.000Z'));
    expect(ledger.send(check('r1', 9)).answer).toMatchObject({ kind: 'check-allowed', unbudgeted: true });
    ledger.at('2026-12-01T00:00:00Z');
    expect(ledger.send(check('r2', 0.5)).answer).toMatchObject({ kind: 'check-allowed' });
    ledger.at('2026-12-02T00:00:00Z');
    expect(ledger.send(check('r3', 0.1)).answer).toMatchObject({
      kind: 'check-refused',
      code: 'budget_ended',
    });
    ledger.define(fixed('2026-12-03T00:00:00.000Z'));
    expect(ledger.send(check('r4', 0.5)).answer).toMatchObject({ kind: 'check-allowed' });
    expect(ledger.send(check('r5', 0.1)).answer).toMatchObject({
      kind: 'check-refused',
      code: 'budget_exceeded',
    });
    ledger.send({ type: 'RetireBudget', id: 'fixed' });
    expect(ledger.send(check('r6', 9)).answer).toMatchObject({ kind: 'check-allowed', unbudgeted: true });
  });

  it('amended: holds stand and remaining may be negative; a new match is a new generation', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    ledger.reserve(check('r1', 4));
    expect(ledger.define(budget('day', '3')).answer).toMatchObject({ generation: 1 });
    expect(ledger.send(check('r2', 1)).answer).toMatchObject({ reasons: [{ held: '4', remaining: '-1' }] });
    const told = ledger.define(budget('day', '5', { match: { workload: 'chat' } }));
    expect(told.answer).toMatchObject({ generation: 2 });
    expect(ledger.define(budget('day', '5', { match: { workload: 'chat' } })).events).toEqual([]);
  });

  it('set-asides may not exceed the limit', () => {
    const told = new LedgerSpec().define(budget('day', '5', { setAsides: [{ match: {}, amount: '5.01' }] }));
    expect(told.rejection).toMatchObject({ code: 'invalid', faults: [{ path: 'setAsides' }] });
  });

  it('casebook 32: a threshold alerts once a window, and again when the limit changed', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '1', { thresholds: [0.5, 1] }));
    const spend = (id: string, dollars: number) => alerts(ledger.send(check(id, dollars)).events);
    expect(spend('a', 0.49)).toEqual([]);
    expect(spend('b', 0.01)).toEqual([0.5]);
    expect(spend('c', 0.4)).toEqual([]);
    expect(spend('d', 0.1)).toEqual([1]);
    ledger.define(budget('day', '3', { thresholds: [0.5, 1] }));
    expect(spend('e', 0.5)).toEqual([0.5]);
    ledger.later(86_400);
    expect(spend('f', 1.5)).toEqual([0.5]);
  });

  it('the day of a zone with daylight saving: 23 hours, and the limit holds for exactly them', () => {
    const ledger = new LedgerSpec(Date.parse('2026-03-28T23:00:00Z'), { timezone: 'Europe/Berlin' });
    ledger.define(budget('day', '1'));
    ledger.reserve(check('r1', 1));
    ledger.at('2026-03-29T21:59:59Z');
    expect(ledger.send(check('r2', 1)).answer).toMatchObject({
      kind: 'check-refused',
      retryAt: '2026-03-29T22:00:00.000Z',
    });
    ledger.at('2026-03-29T22:00:00Z');
    expect(ledger.send(check('r3', 1)).answer?.kind).toBe('check-allowed');
  });

  it('the timezone is fixed after the first reservation', () => {
    const ledger = new LedgerSpec();
    const zone = (timezone: string) => ledger.send({ type: 'ChangeSettings', settings: { timezone } });
    expect(zone('Europe/Berlin').answer).toMatchObject({
      settings: { timezone: 'Europe/Berlin', minOutputTokens: 0 },
    });
    expect(zone('Mars/Olympus').rejection).toMatchObject({ code: 'invalid', faults: [{ path: 'timezone' }] });
    ledger.reserve(check('r1', 1));
    expect(zone('UTC').rejection?.code).toBe('timezone_fixed');
  });
});
