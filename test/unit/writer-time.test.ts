import { InMemoryEventStore } from '../../src/event-store/memory/in-memory-event-store';
import type { Timers } from '../../src/writer/options';
import { PROCESS_TIMERS } from '../../src/writer/options';
import { budget, check, usage } from './domain/ledger-spec';
import { FaultyStore } from './faulty-store';
import {
  NOON,
  OPEN,
  TestClock,
  answer,
  define,
  freshFold,
  stateOf,
  until,
  wholeLog,
  writerOn,
} from './writer-setting';

const closings: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0)) await close();
});

/** Timers whose periodic part a test rings itself. */
class Bell implements Timers {
  private readonly waiting = new Set<() => void>();
  after = PROCESS_TIMERS.after.bind(PROCESS_TIMERS);

  background(_ms: number, run: () => void): () => void {
    const ring = () => {
      this.waiting.delete(ring);
      run();
    };
    this.waiting.add(ring);
    return () => this.waiting.delete(ring);
  }

  ring(): void {
    for (const ring of [...this.waiting]) ring();
  }
}

const reservedBy = (outcome: Parameters<typeof answer>[0]): string => {
  const told = answer(outcome);
  if (told.kind !== 'check-allowed' || !told.reservation) throw new Error('not reserved');
  return told.reservation.id;
};

describe('expiry', () => {
  test('casebook 10: with two writers each expiry is booked exactly once, without anybody asking', async () => {
    const store = new InMemoryEventStore();
    const clock = new TestClock();
    const bells = [new Bell(), new Bell()] as const;
    const on = (timers: Timers) => writerOn(store, { clock, timers, options: { expiryLimit: 8 } });
    const [one, two] = [on(bells[0]), on(bells[1])];
    closings.push(
      () => one.writer.close(),
      () => two.writer.close(),
    );
    await one.send(OPEN);
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 ? one : two).send(check(`r${i}`, 0.01, { ttlSeconds: 60 })),
      ),
    );
    await one.send(check('longer', 0.01, { ttlSeconds: 120 }));
    // The other must know of them too: a look at the log brings it up to date.
    await two.send({
      type: 'ReleaseReservation',
      reservationId: 'rsv_0_000000000000',
    });
    clock.nowMs += 60_000;
    const expired = async () => (await wholeLog(store)).filter(({ type }) => type === 'ReservationExpired');
    await until(async () => {
      for (const bell of bells) bell.ring();
      return (await expired()).length >= 20;
    });
    for (let i = 0; i < 50; i += 1) {
      for (const bell of bells) bell.ring();
      await new Promise((resolve) => setImmediate(resolve));
    }
    const log = await wholeLog(store);
    const names = (await expired()).map(
      (event) => event.type === 'ReservationExpired' && event.data.requestId,
    );
    expect([...names].sort()).toEqual(Array.from({ length: 20 }, (_, i) => `r${i}`).sort());
    expect(log.filter((event) => event.type === 'UsageCharged' && event.data.assumed)).toHaveLength(20);
    expect(
      log.every((event) => event.type !== 'ReservationExpired' || event.metadata.actor === 'system'),
    ).toBe(true);
  });

  test('at most so many an append, and in appends of their own', async () => {
    const store = new FaultyStore(new InMemoryEventStore());
    const clock = new TestClock();
    const timers = new Bell();
    const { writer, send } = writerOn(store, {
      clock,
      timers,
      options: { expiryLimit: 3 },
    });
    closings.push(() => writer.close());
    await send(OPEN);
    await Promise.all(Array.from({ length: 7 }, (_, i) => send(check(`r${i}`, 0.01, { ttlSeconds: 1 }))));
    clock.nowMs += 1_000;
    const release = store.hold();
    const before = send(check('before', 0.01));
    await store.untilHeld();
    timers.ring();
    const after = send(check('after', 0.01));
    release();
    await Promise.all([before, after]);
    await until(async () => {
      timers.ring();
      return (await wholeLog(store)).filter(({ type }) => type === 'ReservationExpired').length === 7;
    });
    const shapes = store.appends
      .map(({ events }) => events.map(({ type }) => type))
      .filter((types) => types.includes('ReservationExpired'));
    expect(shapes.map((types) => types.length)).toEqual([6, 6, 2]);
    expect(shapes.flat()).not.toContain('SpendReserved');
    expect(stateOf(writer)).toBe(await freshFold(store));
  });

  test('what was held before a restart expires after it', async () => {
    const store = new InMemoryEventStore();
    const clock = new TestClock();
    const first = writerOn(store, { clock });
    await first.send(OPEN);
    await first.send(check('one', 0.01, { ttlSeconds: 1 }));
    await first.writer.close();
    clock.nowMs += 1_000;
    const second = writerOn(store, { clock });
    closings.push(() => second.writer.close());
    await until(async () => (await wholeLog(store)).some(({ type }) => type === 'ReservationExpired'));
  });
});

describe('time that passes while nothing is recorded', () => {
  const NOTHING = {
    type: 'ReleaseReservation',
    reservationId: 'rsv_0_000000000000',
  } as const;

  async function held() {
    const inner = new InMemoryEventStore();
    const store = new FaultyStore(inner);
    const clock = new TestClock();
    const made = writerOn(store, { clock, timers: new Bell() });
    closings.push(() => made.writer.close());
    await made.send(OPEN);
    await made.send({
      type: 'ChangeSettings',
      settings: { onExpiry: 'release' },
    });
    await made.send(define(budget('all', '0.02')));
    await made.send(check('held', 0.02, { ttlSeconds: 60 }));
    return { inner, store, clock, ...made };
  }

  test('is taken back', async () => {
    const { store, clock, send, writer } = await held();
    const before = stateOf(writer);
    clock.nowMs += 60_000;
    expect(await send(NOTHING)).toMatchObject({
      rejection: { code: 'reservation_not_found' },
    });
    expect(stateOf(writer)).toBe(before);
    expect(stateOf(writer)).toBe(await freshFold(store));
  });

  test('is taken back also where it was decided upon a batch being stored', async () => {
    const { inner, store, clock, send, writer } = await held();
    const release = store.hold();
    const first = send({
      type: 'ChangeSettings',
      settings: { reservationTtlSeconds: 7 },
    });
    await store.untilHeld();
    clock.nowMs += 60_000;
    const second = send(NOTHING);
    await until(() => writer.counters().inFlight === 2);
    release();
    await Promise.all([first, second]);
    expect(stateOf(writer)).toBe(await freshFold(store));
    // Events of others can still be taken in.
    const rival = writerOn(inner);
    closings.push(() => rival.writer.close());
    await rival.send(check('stranger', 0.01));
    expect(answer(await send(check('free again', 0.02))).kind).toBe('check-allowed');
    expect(stateOf(writer)).toBe(await freshFold(store));
  });
});

describe('a budget defined in the middle of its window', () => {
  async function spending(options = {}) {
    const inner = new InMemoryEventStore();
    const store = new FaultyStore(inner);
    const clock = new TestClock(NOON - 3_600_000);
    const made = writerOn(store, { clock, options });
    closings.push(() => made.writer.close());
    await made.send(OPEN);
    await made.send({
      type: 'ChangeSettings',
      settings: { onExpiry: 'release' },
    });
    const ids = (
      await Promise.all(
        Array.from({ length: 40 }, (_, i) => made.send(check(`m${i}`, 0.1, { ttlSeconds: 3_600 }))),
      )
    ).map(reservedBy);
    await Promise.all(ids.slice(0, 20).map((id) => made.send(usage(id, 0.05))));
    return { inner, store, clock, ids, ...made };
  }

  const opening = async (store: FaultyStore, id: string) => {
    const event = (await wholeLog(store)).find(
      (each) => each.type === 'BudgetDefined' && each.data.budget.id === id,
    );
    if (event?.type !== 'BudgetDefined') throw new Error('not defined');
    return { revision: event.revision, opening: event.data.opening[0] };
  };

  test('counts what was spent and held in it already', async () => {
    const { store, writer, send } = await spending();
    await send(define(budget('day', '5')));
    expect((await opening(store, 'day')).opening).toMatchObject({
      charged: '1',
      held: '2',
    });
    expect(answer(await send(check('fits', 2)))).toMatchObject({
      kind: 'check-allowed',
    });
    expect(answer(await send(check('does not', 0.01)))).toMatchObject({
      kind: 'check-refused',
    });
    expect(stateOf(writer)).toBe(await freshFold(store));
  });

  test('is exact to the revision while checks go on', async () => {
    const { store, writer, send } = await spending({ pageEvents: 16 });
    let going = true;
    const load = Array.from({ length: 8 }, async (_, client) => {
      for (let i = 0; going && i < 500; i += 1) {
        const told = answer(await send(check(`c${client}-${i}`, 0.01)));
        if (told.kind !== 'check-allowed' || !told.reservation) continue;
        if (i % 2) await send(usage(told.reservation.id, 0.005));
      }
    });
    await until(async () => (await wholeLog(store)).length > 400);
    const told = await send(define(budget('day', '1000')));
    going = false;
    await Promise.all(load);
    expect(answer(told).kind).toBe('budget');
    const { revision, opening: balance } = await opening(store, 'day');
    let [charged, held] = [0, 0];
    const open = new Map<string, number>();
    for (const event of (await wholeLog(store)).slice(0, revision)) {
      if (event.type === 'SpendReserved') open.set(event.data.reservationId, Number(event.data.amount));
      if (event.type === 'UsageCharged') {
        charged += Number(event.data.cost);
        open.delete(event.data.reservationId ?? '');
      }
    }
    for (const amount of open.values()) held += amount;
    expect(Number(balance?.charged)).toBeCloseTo(charged, 9);
    expect(Number(balance?.held)).toBeCloseTo(held, 9);
    expect(stateOf(writer)).toBe(await freshFold(store));
  });

  test('is decided again on what another process wrote meanwhile', async () => {
    const { inner, store, send, writer, ids } = await spending();
    const rival = writerOn(inner, { clock: new TestClock(NOON - 3_600_000) });
    closings.push(() => rival.writer.close());
    store.intruder = async () => {
      await rival.send(usage(ids[30] ?? '', 0.3));
    };
    store.faults.push('intruder');
    await send(define(budget('day', '5')));
    expect((await opening(store, 'day')).opening).toMatchObject({
      charged: '1.3',
      held: '1.9',
    });
    expect(stateOf(writer)).toBe(await freshFold(store));
  });

  test('holds that are due when it is decided are not in it, though they were when the fold began', async () => {
    const { inner, store, send, writer, clock } = await spending();
    const rival = writerOn(inner, { clock: new TestClock(NOON - 3_600_000) });
    closings.push(() => rival.writer.close());
    store.intruder = async () => {
      await rival.send(check('stranger', 0.2));
      clock.nowMs = NOON;
    };
    store.faults.push('intruder');
    await send(define(budget('day', '5')));
    expect((await opening(store, 'day')).opening).toMatchObject({
      charged: '1',
      held: '0',
    });
    expect(stateOf(writer)).toBe(await freshFold(store));
  });

  test('is refused where the history is too long', async () => {
    const { send } = await spending({ openingLimitMs: -1, recentEvents: 8 });
    expect(await send(define(budget('day', '5')))).toMatchObject({
      kind: 'rejected',
      rejection: { code: 'history_too_long' },
    });
    expect(
      answer(
        await send({
          ...define(budget('day', '5')),
          countFrom: 'now',
        } as never),
      ).kind,
    ).toBe('budget');
  });
});
