import { ANTHROPIC, DEEPSEEK, LedgerSpec, budget, check, types, usage } from './ledger-spec';

const refusal = (answer: unknown) =>
  answer as {
    kind: string;
    code: string;
    reasons: Record<string, unknown>[];
    retryAt?: string;
    nextAttempt: number;
  };
const allowed = (answer: unknown) =>
  answer as {
    kind: string;
    budgets: Record<string, unknown>[];
    reservation: { id: string; amount: string };
    warnings?: unknown[];
    wouldRefuse?: { code: string }[];
    unbudgeted?: true;
    model: string;
    fallbackFrom?: unknown;
    skipped?: { code: string; candidate: number }[];
  };

describe('check', () => {
  it('holds the estimate in every matching budget at once', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('all', '5'));
    ledger.define(budget('chat', '3', { match: { workload: 'chat' } }));
    const told = ledger.send(check('r1', 1, { workload: 'chat' }));
    expect(types(told.events)).toEqual(['PriceListed', 'SpendEstimated', 'SpendReserved']);
    expect(allowed(told.answer).budgets).toMatchObject([
      { id: 'all', limit: '5', charged: '0', held: '1', remaining: '4' },
      { id: 'chat', limit: '3', charged: '0', held: '1', remaining: '2' },
    ]);
    expect(allowed(told.answer).reservation.amount).toBe('1');
  });

  it('casebook 1: of 200 checks against room for 46, 46 pass', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('all', '0.92'));
    const passed = Array.from({ length: 200 }, (_, i) => ledger.send(check(`r${i}`, 0.02))).filter(
      ({ answer }) => answer?.kind === 'check-allowed',
    );
    expect(passed).toHaveLength(46);
    expect(ledger.used('all')).toEqual({ charged: '0', held: '0.92' });
  });

  it('casebook 2: a budget per subject applies from the subject’s first request', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('visitor', '1', { each: ['subject'] }));
    expect(ledger.send(check('a1', 0.6, { subject: 'a' })).answer?.kind).toBe('check-allowed');
    expect(ledger.send(check('a2', 0.6, { subject: 'a' })).answer?.kind).toBe('check-refused');
    expect(ledger.send(check('b1', 0.6, { subject: 'b' })).answer?.kind).toBe('check-allowed');
    expect(ledger.send(check('n1', 0.6)).answer?.kind).toBe('check-allowed');
    const shared = refusal(ledger.send(check('n2', 0.6)).answer);
    expect(shared.reasons[0]).toMatchObject({ budget: 'visitor', bucket: { subject: null }, held: '0.6' });
  });

  it('casebook 4 and 7: refuses and names every failing budget with its numbers, cutting nothing', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    ledger.define(
      budget('fixed', '3', { window: { from: '2026-11-01T00:00:00.000Z', to: '2026-12-31T00:00:00.000Z' } }),
    );
    ledger.reserve(check('r1', 2.5));
    const told = ledger.send(check('r2', 3));
    expect(types(told.events)).toEqual(['SpendEstimated', 'SpendRefused']);
    const answer = refusal(told.answer);
    expect(answer).toMatchObject({
      kind: 'check-refused',
      code: 'budget_exceeded',
      nextAttempt: 2,
      retryAt: undefined,
    });
    expect(answer.reasons).toMatchObject([
      {
        code: 'budget_exceeded',
        candidate: 0,
        budget: 'day',
        limit: '5',
        charged: '0',
        held: '2.5',
        remaining: '2.5',
        resetsAt: '2026-12-01T00:00:00.000Z',
      },
      {
        code: 'budget_exceeded',
        candidate: 0,
        budget: 'fixed',
        limit: '3',
        charged: '0',
        held: '2.5',
        remaining: '0.5',
      },
    ]);
    expect(answer.reasons[1]).not.toHaveProperty('resetsAt');
    expect(ledger.used('day')).toEqual({ charged: '0', held: '2.5' });
  });

  it('says when to retry only if waiting helps', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    ledger.reserve(check('r1', 4));
    expect(refusal(ledger.send(check('r2', 2)).answer).retryAt).toBe('2026-12-01T00:00:00.000Z');
    expect(refusal(ledger.send(check('r3', 6)).answer).retryAt).toBeUndefined();
    ledger.define(budget('month', '6', { window: 'month' }));
    ledger.at('2026-11-29T12:00:00Z');
    expect(refusal(ledger.send(check('r4', 5)).answer).retryAt).toBe('2026-12-01T00:00:00.000Z');
  });

  it('set-asides hold back their part for their own workload', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5', { setAsides: [{ match: { workload: 'report' }, amount: '3' }] }));
    const chat = (id: string, dollars: number) =>
      ledger.send(check(id, dollars, { workload: 'chat' })).answer;
    expect(chat('c1', 2.000001)?.kind).toBe('check-refused');
    expect(chat('c2', 2)?.kind).toBe('check-allowed');
    expect(refusal(chat('c3', 0.01)).reasons[0]).toMatchObject({ held: '2', setAside: '3', remaining: '0' });
    const report = ledger.send(check('p1', 3, { workload: 'report' })).answer;
    expect(allowed(report).budgets[0]).toMatchObject({ held: '5', remaining: '0', setAside: 0 });
  });

  it('reports get whatever others have not used', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5', { setAsides: [{ match: { workload: 'report' }, amount: '3' }] }));
    expect(ledger.send(check('p1', 5, { workload: 'report' })).answer?.kind).toBe('check-allowed');
  });

  it('casebook 5: each fallback is a check of its own, and says why the earlier were skipped', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('anthropic', '1', { match: { provider: 'anthropic' } }));
    ledger.define(budget('all', '2'));
    const fallbacks = [
      { account: DEEPSEEK, model: 'deepseek-chat', estimate: { inputTokens: 1_000_000, maxOutputTokens: 0 } },
    ];
    const moved = allowed(ledger.send(check('r1', 1.5, { fallbacks })).answer);
    expect(moved).toMatchObject({
      model: 'deepseek-chat',
      fallbackFrom: { account: ANTHROPIC, model: 'claude-haiku-4-5' },
    });
    expect(moved.skipped).toMatchObject([{ code: 'budget_exceeded', candidate: 0, budget: 'anthropic' }]);
    expect(moved.reservation.amount).toBe('0.28');
    ledger.define(budget('tight', '0.1'), 'now');
    const stopped = refusal(ledger.send(check('r2', 1.5, { fallbacks })).answer);
    expect(stopped.reasons.map((reason) => [reason['candidate'], reason['budget']])).toEqual([
      [0, 'anthropic'],
      [0, 'tight'],
      [1, 'tight'],
    ]);
  });

  it('casebook 6 and 9: a limit of 0 refuses everything, a free request passes a spent budget', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('spent', '1', { match: { workload: 'a' } }));
    ledger.reserve(check('r1', 1, { workload: 'a' }));
    const free = { account: { ...ANTHROPIC, provider: 'openai' }, model: 'free', workload: 'a' };
    expect(ledger.send(check('r2', 1, free)).answer?.kind).toBe('check-allowed');
    ledger.define(budget('nothing', '0', { match: { workload: 'a' } }));
    expect(refusal(ledger.send(check('r3', 1, free)).answer).reasons).toMatchObject([
      { code: 'budget_exceeded', budget: 'nothing', limit: '0' },
    ]);
    expect(ledger.define(budget('bad', '-1')).rejection).toMatchObject({
      code: 'invalid',
      faults: [{ path: 'limit' }],
    });
  });

  it('refuses a model without a price, and records its tokens without an amount', () => {
    const ledger = new LedgerSpec();
    const told = ledger.send(check('r1', 1, { model: 'claude-unheard-of' }));
    expect(refusal(told.answer)).toMatchObject({ code: 'unknown_price', retryAt: undefined });
    expect(told.events[0]).toMatchObject({
      type: 'SpendEstimated',
      data: { usage: { inputTokens: 1_000_000 } },
    });
    expect(told.events[0]?.data).not.toHaveProperty('amount');
  });

  it('codes come in their order, whatever fails first', () => {
    const ledger = new LedgerSpec();
    ledger.define(
      budget('ended', '1', { window: { from: '2026-01-01T00:00:00.000Z', to: '2026-02-01T00:00:00.000Z' } }),
    );
    ledger.define(budget('zero', '0'));
    const told = refusal(ledger.send(check('r1', 1, { model: 'unheard-of' })).answer);
    expect(told.reasons.map((reason) => reason['code'])).toEqual([
      'unknown_price',
      'budget_ended',
      'budget_exceeded',
    ]);
    expect(told.code).toBe('unknown_price');
  });

  it('another spelling of a model does not slip by a budget on it', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('haiku', '1', { match: { model: 'claude-haiku-4-5' } }));
    ledger.reserve(check('r1', 1, { model: 'claude-haiku-4-5-20251001' }));
    expect(ledger.send(check('r2', 0.1)).answer?.kind).toBe('check-refused');
  });

  it('an inexact price is refused where the ledger requires an exact one', () => {
    const ledger = new LedgerSpec(undefined, { requireExactPrice: true });
    expect(ledger.send(check('r1', 1)).answer?.kind).toBe('check-allowed');
    expect(refusal(ledger.send(check('r2', 1, { model: 'claude-haiku-4-5-20251001' })).answer).code).toBe(
      'unknown_price',
    );
  });

  it('a service tier without a price is refused', () => {
    const ledger = new LedgerSpec();
    expect(refusal(ledger.send(check('r1', 1, { serviceTier: 'flex' })).answer).code).toBe('unknown_price');
    expect(ledger.send(check('r2', 1, { serviceTier: 'standard' })).answer?.kind).toBe('check-allowed');
  });

  it('what no budget matches is allowed as unbudgeted, or refused if the ledger says so', () => {
    const ledger = new LedgerSpec();
    expect(allowed(ledger.send(check('r1', 1)).answer).unbudgeted).toBe(true);
    ledger.send({ type: 'ChangeSettings', settings: { onNoBudget: 'refuse' } });
    expect(refusal(ledger.send(check('r2', 1)).answer).code).toBe('no_budget');
  });

  it('more than 64 matching budgets refuse', () => {
    const ledger = new LedgerSpec();
    for (let i = 0; i < 65; i += 1) ledger.define(budget(`b${i}`, '5'));
    expect(refusal(ledger.send(check('r1', 1)).answer).code).toBe('too_many_budgets');
    ledger.send({ type: 'RetireBudget', id: 'b0' });
    expect(ledger.send(check('r2', 1)).answer?.kind).toBe('check-allowed');
  });

  it('a bucket more than a budget may have is refused, with one alert', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('visitor', '1', { each: ['subject'], maxBuckets: 2 }));
    ledger.reserve(check('r1', 0.1, { subject: 'a' }));
    ledger.reserve(check('r2', 0.1, { subject: 'b' }));
    const third = ledger.send(check('r3', 0.1, { subject: 'c' }));
    expect(refusal(third.answer).code).toBe('too_many_buckets');
    expect(types(third.events)).toContain('AlertRaised');
    expect(types(ledger.send(check('r4', 0.1, { subject: 'd' })).events)).not.toContain('AlertRaised');
    expect(ledger.send(check('r5', 0.1, { subject: 'a' })).answer?.kind).toBe('check-allowed');
  });

  it('a warn budget never refuses, it warns', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('soft', '1', { mode: 'warn' }));
    const told = allowed(ledger.send(check('r1', 2)).answer);
    expect(told.warnings).toMatchObject([{ code: 'budget_exceeded', budget: 'soft' }]);
    expect(ledger.used('soft')).toEqual({ charged: '0', held: '2' });
  });

  it('observe: what would have been refused is allowed, held, and says so', () => {
    const ledger = new LedgerSpec(undefined, { enforcement: 'observe' });
    ledger.define(budget('day', '1'));
    const told = allowed(ledger.send(check('r1', 2)).answer);
    expect(told.wouldRefuse).toMatchObject([{ code: 'budget_exceeded', budget: 'day' }]);
    expect(ledger.used('day')).toEqual({ charged: '0', held: '2' });
    ledger.send({
      type: 'ChangeSettings',
      settings: { enforcement: 'enforce', workloads: { chat: { enforcement: 'observe' } } },
    });
    expect(ledger.send(check('r2', 2, { workload: 'chat' })).answer?.kind).toBe('check-allowed');
    expect(ledger.send(check('r3', 2, { workload: 'report' })).answer?.kind).toBe('check-refused');
  });

  it('observe: an unknown price is held as nothing and its usage waits for a price', () => {
    const ledger = new LedgerSpec(undefined, { enforcement: 'observe' });
    const told = allowed(ledger.send(check('r1', 2, { model: 'new-model' })).answer);
    expect(told.wouldRefuse).toMatchObject([{ code: 'unknown_price' }]);
    expect(ledger.send(usage(told.reservation.id, 2)).answer).toMatchObject({ charged: '0', unpriced: true });
  });

  it('casebook 14: what is held counts in the next check like what is charged', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '1'));
    const first = ledger.reserve(check('r1', 0.6));
    expect(ledger.send(check('r2', 0.6)).answer?.kind).toBe('check-refused');
    ledger.send(usage(first, 0.3));
    expect(ledger.send(check('r2', 0.6, { attempt: 2 })).answer?.kind).toBe('check-allowed');
  });
});

describe('identity of a check', () => {
  it('casebook 16: the same body gets the same answer, another body is a conflict', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    const first = ledger.send(check('r1', 1));
    ledger.send(check('r2', 1));
    const again = ledger.send(check('r1', 1));
    expect(again.replayed).toBe(true);
    expect(JSON.stringify(again.answer)).toBe(JSON.stringify(first.answer));
    expect(ledger.send(check('r1', 2)).rejection).toMatchObject({
      code: 'idempotency_conflict',
      nextAttempt: 2,
    });
    expect(ledger.used('day')?.held).toBe('2');
  });

  it('a replay says allowed only while the money is held', () => {
    const ledger = new LedgerSpec();
    ledger.send(usage(ledger.reserve(check('r1', 1)), 1));
    expect(ledger.send(check('r1', 1)).rejection).toMatchObject({
      code: 'reservation_ended',
      state: 'confirmed',
      nextAttempt: 2,
    });
    ledger.reserve(check('r2', 1));
    ledger.later(601);
    expect(ledger.send(check('r2', 1)).rejection).toMatchObject({
      code: 'reservation_ended',
      state: 'assumed',
    });
  });

  it('casebook 13 and 15: a refusal holds nothing, replays, and leaves the next attempt free', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '1'));
    expect(refusal(ledger.send(check('r1', 2)).answer).nextAttempt).toBe(2);
    ledger.define(budget('day', '3'));
    const again = ledger.send(check('r1', 2));
    expect([again.replayed, again.answer?.kind]).toEqual([true, 'check-refused']);
    expect(ledger.send(check('r1', 2, { attempt: 2 })).answer?.kind).toBe('check-allowed');
  });

  it('asking only takes no identity and holds nothing', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '1'));
    const told = ledger.send(check('r1', 2, { reserve: false }));
    expect(told.answer).toMatchObject({ kind: 'check-refused', advisory: true, code: 'budget_exceeded' });
    expect(told.events.map((event) => event.type)).toEqual(['PriceListed', 'SpendEstimated']);
    expect(told.events[1]?.data).toMatchObject({ advisory: true });
    expect(ledger.send(check('r1', 1, { reserve: false })).answer).toMatchObject({ kind: 'check-allowed' });
    expect(ledger.used('day')).toBeUndefined();
    expect(ledger.send(check('r1', 1)).answer?.kind).toBe('check-allowed');
  });
});
