import { ANTHROPIC, LedgerSpec, budget, check, types, usage } from './ledger-spec';
import type { RecordUsage } from '../../../src/domain/commands';

const record = (answer: unknown) =>
  answer as {
    chargeId: string;
    charged: string;
    released: string;
    overrun: string;
    quality: string;
    late?: true;
    unpriced?: true;
  };
const unreserved = (
  usageId: string,
  rest: Partial<RecordUsage> = {},
  occurredAtMs?: number,
): RecordUsage => ({
  type: 'RecordUsage',
  of: { usageId, attempt: { account: ANTHROPIC, model: 'claude-haiku-4-5' }, occurredAtMs },
  outcome: 'succeeded',
  usage: { inputTokens: 1_000_000 },
  bodyHash: `${usageId}:${JSON.stringify(rest)}`,
  ...rest,
});

describe('usage of a reservation', () => {
  it('takes the hold’s place; the rest is given back', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    const told = ledger.send(usage(ledger.reserve(check('r1', 2)), 0.5));
    expect(record(told.answer)).toMatchObject({
      charged: '0.5',
      released: '1.5',
      overrun: '0',
      quality: 'confirmed',
    });
    expect(ledger.used('day')).toEqual({ charged: '0.5', held: '0' });
  });

  it('casebook 4: what was spent beyond the hold is booked in full', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    const told = ledger.send(usage(ledger.reserve(check('r1', 2)), 7));
    expect(record(told.answer)).toMatchObject({ charged: '7', released: '0', overrun: '5' });
    expect(ledger.used('day')).toEqual({ charged: '7', held: '0' });
  });

  it('casebook 12: the same body replays, another is a conflict', () => {
    const ledger = new LedgerSpec();
    const id = ledger.reserve(check('r1', 2));
    const first = ledger.send(usage(id, 1));
    const again = ledger.send(usage(id, 1));
    expect(again.replayed).toBe(true);
    expect(again.answer).toEqual(first.answer);
    expect(ledger.send(usage(id, 1.5)).rejection?.code).toBe('idempotency_conflict');
  });

  it('casebook 18: aborted without final usage costs the requested maximum, never below what was seen', () => {
    const ledger = new LedgerSpec();
    const hold = (id: string) =>
      ledger.reserve(check(id, 0, { estimate: { inputTokens: 1_000, maxOutputTokens: 2_000 } }));
    const aborted = (id: string, seen?: RecordUsage['usage']) =>
      record(
        ledger.send(usage(hold(id), 0, { outcome: 'aborted', usage: seen, partial: seen && true })).answer,
      );
    expect(aborted('a')).toMatchObject({ charged: '0.011', quality: 'unconfirmed' });
    expect(aborted('b', { inputTokens: 1_200, outputTokens: 1 })).toMatchObject({ charged: '0.0112' });
    expect(aborted('c', { inputTokens: 1_200, outputTokens: 3_000 })).toMatchObject({ charged: '0.0162' });
  });

  it('failed: with a status and no usage costs 0, a time-out the estimate, with usage the usage', () => {
    const ledger = new LedgerSpec();
    const failed = (id: string, rest: Partial<RecordUsage>) =>
      record(
        ledger.send(usage(ledger.reserve(check(id, 2)), 0, { outcome: 'failed', usage: undefined, ...rest }))
          .answer,
      );
    expect(failed('a', { error: { status: 529 } })).toMatchObject({
      charged: '0',
      released: '2',
      quality: 'confirmed',
    });
    expect(failed('b', {})).toMatchObject({ charged: '2', quality: 'unconfirmed' });
    expect(failed('c', { error: { status: 500 }, usage: { inputTokens: 10 } })).toMatchObject({
      charged: '0.00001',
    });
  });

  it('quality only rises: unconfirmed is corrected by confirmed, in the same windows', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    const id = ledger.reserve(check('r1', 2));
    ledger.send(usage(id, 0, { outcome: 'failed', usage: undefined }));
    const told = ledger.send(usage(id, 0.25));
    expect(types(told.events)).toEqual(['ChargeCorrected']);
    expect(record(told.answer)).toMatchObject({ charged: '0.25', released: '1.75', quality: 'confirmed' });
    expect(ledger.used('day')).toEqual({ charged: '0.25', held: '0' });
    expect(ledger.send(usage(id, 0, { outcome: 'aborted', usage: undefined })).rejection?.code).toBe(
      'idempotency_conflict',
    );
  });

  it('another provider request id is a second paid call: booked in full, with an alert', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    const id = ledger.reserve(check('r1', 2));
    ledger.send(usage(id, 1, { providerRequestId: 'req_1' }));
    const told = ledger.send(usage(id, 1, { providerRequestId: 'req_2' }));
    expect(types(told.events)).toEqual(['UsageCharged', 'AlertRaised']);
    expect(told.events[1]?.data).toMatchObject({ kind: 'duplicate_send', reservationId: id });
    expect(record(told.answer)).toMatchObject({ charged: '1', released: '0', overrun: '1' });
    expect(ledger.used('day')).toEqual({ charged: '2', held: '0' });
    expect(ledger.send(usage(id, 1, { providerRequestId: 'req_2' })).replayed).toBe(true);
  });

  it('the provider’s figure wins over ours, both are kept, and a difference above 20 % alerts', () => {
    const ledger = new LedgerSpec();
    const told = ledger.send(usage(ledger.reserve(check('r1', 2)), 1, { reportedCost: '1.3' }));
    expect(told.events[0]?.data).toMatchObject({ cost: '1.3', ownCost: '1', reportedCost: '1.3' });
    expect(told.events[1]?.data).toMatchObject({ kind: 'cost_mismatch' });
    const close = ledger.send(usage(ledger.reserve(check('r2', 2)), 1, { reportedCost: '1.2' }));
    expect(types(close.events)).toEqual(['UsageCharged']);
    const over = ledger.send(usage(ledger.reserve(check('r5', 2)), 1, { reportedCost: '1.200001' }));
    expect(types(over.events)).toEqual(['UsageCharged', 'AlertRaised']);
    const zero = ledger.send(usage(ledger.reserve(check('r3', 2)), 1, { reportedCost: '0' }));
    expect(record(zero.answer).charged).toBe('1');
    const byok = ledger.send(
      usage(ledger.reserve(check('r4', 2)), 1, { reportedCost: '0.05', upstreamCost: '0.95' }),
    );
    expect(record(byok.answer).charged).toBe('1');
  });

  it('is priced at the rates in force when reserved, for the model that was served', () => {
    const ledger = new LedgerSpec();
    const first = ledger.reserve(check('r1', 2));
    const second = ledger.reserve(check('r2', 2));
    ledger.later(1);
    ledger.send({
      type: 'SetPrice',
      provider: 'anthropic',
      model: 'claude-haiku-4-5',
      rates: { inputTokens: '9', outputTokens: '9' },
      origin: 'operator',
    });
    expect(record(ledger.send(usage(first, 1)).answer).charged).toBe('1');
    const other = ledger.send(usage(second, 1, { servedModel: 'claude-unheard-of' }));
    expect(record(other.answer)).toMatchObject({ charged: '2', unpriced: true });
    expect(record(ledger.send(usage(ledger.reserve(check('r3', 1)), 1)).answer).charged).toBe('9');
  });

  it('casebook 22: usage without a price is kept, alerts, and is corrected as soon as one is set', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    const told = ledger.send(usage(ledger.reserve(check('r1', 0.5)), 3, { servedTier: 'priority' }));
    expect(record(told.answer)).toMatchObject({ charged: '0.5', unpriced: true });
    expect(told.events.at(-1)?.data).toMatchObject({ kind: 'unpriced_usage' });
    const set = ledger.send({
      type: 'SetPrice',
      provider: 'anthropic',
      model: 'claude-haiku-4-5',
      rates: { inputTokens: '1', outputTokens: '5' },
      serviceTiers: { priority: { inputTokens: '2' } },
      origin: 'operator',
    });
    expect(types(set.events)).toEqual(['PriceSet', 'ChargeCorrected']);
    expect(set.events[1]?.data).toMatchObject({ cause: 'price', cost: '6', previousCost: '0.5' });
    expect(ledger.used('day')).toEqual({ charged: '6', held: '0' });
  });

  it('casebook 25: counts in the window of the moment it was reserved', () => {
    const ledger = new LedgerSpec(Date.parse('2026-11-30T23:59:59Z'));
    ledger.define(budget('day', '5'));
    const id = ledger.reserve(check('r1', 2));
    ledger.at('2026-12-01T00:00:05Z');
    ledger.reserve(check('r2', 1));
    const told = ledger.send(usage(id, 1.5));
    expect(told.events[0]?.data).toMatchObject({
      budgets: [{ window: { from: '2026-11-30T00:00:00.000Z' } }],
    });
    expect(ledger.used('day')).toEqual({ charged: '0', held: '1' });
  });

  it('usage of another model than was reserved waits for that model’s price, and for no other', () => {
    const ledger = new LedgerSpec();
    const served = ledger.reserve(check('r1', 0.5));
    ledger.send(usage(served, 3, { servedModel: 'claude-unheard-of' }));
    const price = (model: string) =>
      types(
        ledger.send({
          type: 'SetPrice',
          provider: 'anthropic',
          model,
          rates: { inputTokens: '2' },
          origin: 'operator',
        }).events,
      );
    expect(price('claude-haiku-4-5')).toEqual(['PriceSet']);
    expect(ledger.send({ type: 'ExpireDue', limit: 9 }).events).toEqual([]);
    expect(price('claude-unheard-of')).toEqual(['PriceSet', 'ChargeCorrected']);
  });
});

describe('the end of a reservation', () => {
  it('casebook 10 and 11: expiry books the estimate as spent, decided on time and not on the sweep', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    const id = ledger.reserve(check('r1', 2));
    ledger.later(601);
    const told = ledger.send(usage(id, 0.5));
    expect(types(told.events)).toEqual(['ReservationExpired', 'UsageCharged', 'ChargeCorrected']);
    expect(told.events[1]?.data).toMatchObject({ assumed: true, quality: 'assumed', cost: '2' });
    expect(record(told.answer)).toMatchObject({ charged: '0.5', quality: 'confirmed' });
    expect(ledger.used('day')).toEqual({ charged: '0.5', held: '0' });
  });

  it('the sweep books what is due, at most so many, and says whether there is more', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    for (let i = 0; i < 3; i += 1) ledger.reserve(check(`r${i}`, 1));
    ledger.later(601);
    expect(ledger.send({ type: 'ExpireDue', limit: 2 }).answer).toMatchObject({
      kind: 'expired',
      count: 2,
      more: true,
    });
    expect(ledger.used('day')).toEqual({ charged: '2', held: '1' });
    expect(ledger.send({ type: 'ExpireDue', limit: 2 }).answer).toMatchObject({ count: 1, more: false });
    expect(ledger.send({ type: 'ExpireDue', limit: 2 }).events).toEqual([]);
  });

  it('with onExpiry release due holds count as given back at once, and usage after it is late', () => {
    const ledger = new LedgerSpec(undefined, { onExpiry: 'release' });
    ledger.define(budget('day', '1'));
    const id = ledger.reserve(check('r1', 1));
    ledger.later(601);
    expect(ledger.send(check('r2', 0.9)).answer?.kind).toBe('check-allowed');
    const told = ledger.send(usage(id, 0.5));
    expect(types(told.events)).toEqual(['ReservationExpired', 'UsageCharged']);
    expect(record(told.answer)).toMatchObject({ charged: '0.5', late: true, released: '0' });
    expect(ledger.used('day')).toEqual({ charged: '0.5', held: '0.9' });
  });

  it('release gives back what was never sent; again, it replays; usage after it is late and in full', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    const id = ledger.reserve(check('r1', 2));
    const release = { type: 'ReleaseReservation', reservationId: id } as const;
    const told = ledger.send(release);
    expect(told.answer).toMatchObject({ kind: 'reservation-released', released: '2' });
    expect(ledger.used('day')).toEqual({ charged: '0', held: '0' });
    const again = ledger.send(release);
    expect([again.replayed, again.answer]).toEqual([true, told.answer]);
    expect(record(ledger.send(usage(id, 1)).answer)).toMatchObject({ charged: '1', late: true });
    expect(ledger.used('day')).toEqual({ charged: '1', held: '0' });
    const later = ledger.send(release);
    expect([later.replayed, later.answer]).toEqual([true, told.answer]);
    const other = ledger.reserve(check('r2', 1));
    ledger.send(usage(other, 1));
    expect(ledger.send({ type: 'ReleaseReservation', reservationId: other }).rejection).toMatchObject({
      code: 'reservation_ended',
      state: 'confirmed',
    });
  });

  it('release of an assumption corrects it to 0, and usage still corrects that', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    const id = ledger.reserve(check('r1', 2));
    ledger.later(601);
    const told = ledger.send({ type: 'ReleaseReservation', reservationId: id });
    expect(types(told.events)).toEqual(['ReservationExpired', 'UsageCharged', 'ChargeCorrected']);
    expect(ledger.used('day')).toEqual({ charged: '0', held: '0' });
    expect(ledger.send({ type: 'ReleaseReservation', reservationId: id }).replayed).toBe(true);
    expect(record(ledger.send(usage(id, 1)).answer)).toMatchObject({ charged: '1', late: true });
    expect(ledger.used('day')).toEqual({ charged: '1', held: '0' });
  });

  it('extend gives more time, never less, and nothing to what has ended', () => {
    const ledger = new LedgerSpec();
    const id = ledger.reserve(check('r1', 2));
    const extend = (ttlSeconds: number) =>
      ledger.send({ type: 'ExtendReservation', reservationId: id, ttlSeconds });
    expect(extend(1_200).answer).toMatchObject({ expiresAt: '2026-11-30T12:20:00.000Z' });
    expect(extend(10)).toMatchObject({ events: [], answer: { expiresAt: '2026-11-30T12:20:00.000Z' } });
    ledger.later(1_199);
    expect(ledger.send({ type: 'ExpireDue', limit: 9 }).events).toEqual([]);
    ledger.later(1);
    expect(extend(10).rejection).toMatchObject({ code: 'reservation_ended', state: 'assumed' });
  });

  it('a reservation nobody made is not found', () => {
    const ledger = new LedgerSpec();
    expect(ledger.send(usage('rsv_7_000000000000', 1)).rejection?.code).toBe('reservation_not_found');
    expect(ledger.send({ type: 'ReleaseReservation', reservationId: 'x' }).rejection?.code).toBe(
      'reservation_not_found',
    );
  });
});

describe('usage nobody reserved', () => {
  it('is booked in the windows of when it happened, once', () => {
    const ledger = new LedgerSpec(Date.parse('2026-12-01T00:30:00Z'));
    ledger.define(budget('day', '5'));
    const told = ledger.send(unreserved('u1', {}, Date.parse('2026-11-30T23:00:00Z')));
    expect(told.events.find((event) => event.type === 'UsageCharged')?.data).toMatchObject({
      usageId: 'u1',
      cost: '1',
      budgets: [{ id: 'day', window: { from: '2026-11-30T00:00:00.000Z' } }],
    });
    expect(ledger.used('day')).toBeUndefined();
    expect(ledger.send(unreserved('u1', {}, Date.parse('2026-11-30T23:00:00Z'))).replayed).toBe(true);
    expect(ledger.send(unreserved('u1', { usage: { inputTokens: 7 } })).rejection?.code).toBe(
      'idempotency_conflict',
    );
  });

  it('needs usage, a cost, or an error with its status, and a time not far away', () => {
    const ledger = new LedgerSpec();
    const far = ledger.send(unreserved('u1', { usage: undefined }, Date.parse('2026-11-29T11:59:59Z')));
    expect(far.rejection).toMatchObject({
      code: 'invalid',
      faults: [{ path: 'occurredAt' }, { path: 'usage' }],
    });
    expect(ledger.send(unreserved('u2', {}, Date.parse('2026-11-30T12:05:01Z'))).rejection?.code).toBe(
      'invalid',
    );
    const error = unreserved('u3', { usage: undefined, outcome: 'failed', error: { status: 400 } });
    expect(record(ledger.send(error).answer)).toMatchObject({ charged: '0', quality: 'confirmed' });
    const cost = unreserved('u4', { usage: undefined, reportedCost: '0.07' });
    expect(record(ledger.send(cost).answer)).toMatchObject({ charged: '0.07', quality: 'confirmed' });
  });
});

describe('corrections', () => {
  it('an operator’s total replaces a charge, once per correction id', () => {
    const ledger = new LedgerSpec();
    ledger.define(budget('day', '5'));
    const { chargeId } = record(ledger.send(usage(ledger.reserve(check('r1', 2)), 1)).answer);
    const correct = (amount: string) =>
      ledger.send({
        type: 'CorrectCharge',
        chargeId,
        correctionId: 'k1',
        amount,
        reason: 'invoice',
        bodyHash: amount,
      });
    expect(correct('0.4').answer).toMatchObject({ kind: 'charge-corrected', charged: '0.4', previous: '1' });
    expect(ledger.used('day')).toEqual({ charged: '0.4', held: '0' });
    expect(correct('0.4').replayed).toBe(true);
    expect(correct('0.5').rejection?.code).toBe('idempotency_conflict');
  });
});
