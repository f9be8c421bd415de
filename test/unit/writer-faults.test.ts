import { InMemoryEventStore } from '../../src/event-store/memory/in-memory-event-store';
import type { WriterOptions } from '../../src/writer/options';
import { budget, check, usage } from './domain/ledger-spec';
import { FaultyStore } from './faulty-store';
import {
  KeptStorage,
  OPEN,
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

async function setting(options: Partial<WriterOptions> = {}) {
  const inner = new InMemoryEventStore();
  const store = new FaultyStore(inner);
  const made = writerOn(store, {
    options: { outagePauseMs: 1, outagePauseCapMs: 5, ...options },
  });
  closings.push(() => made.writer.close());
  await made.send(OPEN);
  return { inner, store, ...made };
}

const reservations = async (store: FaultyStore) =>
  (await wholeLog(store)).flatMap((event) => (event.type === 'SpendReserved' ? [event.data.requestId] : []));

const idsOf = ({ events }: FaultyStore['appends'][number]) => events.map(({ id }) => id);

describe('an unknown outcome', () => {
  test.each(['time-out before commit', 'time-out after commit', 'late commit'] as const)(
    '%s: the same bytes are appended again, and each command happens once',
    async (fault) => {
      const { store, writer, send } = await setting();
      store.faults.push(fault);
      const outcomes = await Promise.all(Array.from({ length: 5 }, (_, i) => send(check(`r${i}`, 0.01))));
      expect(outcomes.map((each) => answer(each).kind)).toEqual(Array(5).fill('check-allowed'));
      const [, first, second] = store.appends;
      if (!first || !second) throw new Error('appended only once');
      expect(second.events.map(({ bytes }) => bytes.toString())).toEqual(
        first.events.map(({ bytes }) => bytes.toString()),
      );
      expect(await reservations(store)).toEqual(['r0', 'r1', 'r2', 'r3', 'r4']);
      expect(stateOf(writer)).toBe(await freshFold(store));
      expect(writer.counters().unknownOutcomes).toBe(1);
    },
  );

  test('others wrote in its place: the commands are decided anew, with new ids', async () => {
    const { inner, store, writer, send } = await setting();
    const rival = writerOn(inner);
    closings.push(() => rival.writer.close());
    await rival.writer.ready();
    store.faults.push('time-out before commit', 'intruder');
    store.intruder = async () => {
      await rival.send(check('stranger', 0.01));
    };
    expect(answer(await send(check('mine', 0.01))).kind).toBe('check-allowed');
    expect(await reservations(store)).toEqual(['stranger', 'mine']);
    const [, first, , third] = store.appends;
    if (!first || !third) throw new Error('too few appends');
    expect(idsOf(third).some((id) => idsOf(first).includes(id))).toBe(false);
    expect(stateOf(writer)).toBe(await freshFold(store));
  });

  test('while it lasts, nothing else is appended, and callers are told in time what is certain', async () => {
    const { store, writer, send } = await setting({
      answerWithinMs: 300,
      outagePauseCapMs: 20,
    });
    const release = store.hold();
    const sent = send(check('sent', 0.01)).catch((error: unknown) => error);
    await store.untilHeld();
    const decided = send(check('decided', 0.01)).catch((error: unknown) => error);
    await until(() => writer.counters().inFlight === 2);
    store.faults.push(...Array<'time-out before commit'>(1_000).fill('time-out before commit'));
    release();
    await until(() => writer.counters().unknownOutcomes === 1);
    const queued = send(check('queued', 0.01)).catch((error: unknown) => error);
    expect(await sent).toMatchObject({
      name: 'LogUnavailableError',
      outcome: 'unknown',
      retryAfterSeconds: 1,
    });
    expect(await decided).toMatchObject({
      name: 'LogUnavailableError',
      outcome: 'none',
    });
    expect(await queued).toMatchObject({
      name: 'LogUnavailableError',
      outcome: 'none',
    });
    const tried = store.appends.slice(1);
    expect(new Set(tried.map((each) => idsOf(each).join()))).toEqual(
      new Set([idsOf(tried[0] as never).join()]),
    );
    store.faults.length = 0;
    // The unknown batch is resolved by itself; what was told "none" is never executed.
    expect(answer(await send(check('after', 0.01))).kind).toBe('check-allowed');
    expect(await reservations(store)).toEqual(['sent', 'after']);
    expect(stateOf(writer)).toBe(await freshFold(store));
  });

  test('a hanging append: callers behind it are told none, and their commands never happen', async () => {
    const { store, writer, send } = await setting({ answerWithinMs: 300 });
    const release = store.hold();
    const sent = send(check('sent', 0.01)).catch((error: unknown) => error);
    await store.untilHeld();
    const behind = send(check('behind', 0.01)).catch((error: unknown) => error);
    expect(await sent).toMatchObject({ outcome: 'unknown' });
    expect(await behind).toMatchObject({ outcome: 'none' });
    release();
    expect(answer(await send(check('after', 0.01))).kind).toBe('check-allowed');
    expect(await reservations(store)).toEqual(['sent', 'after']);
    expect(stateOf(writer)).toBe(await freshFold(store));
  });
});

describe('a store that is not there', () => {
  test('fails the batch with none, rolls back, and goes on when it is back', async () => {
    const { store, writer, send } = await setting();
    await send(define(budget('all', '0.02')));
    const before = stateOf(writer);
    store.faults.push('unavailable');
    await expect(send(check('lost', 0.02))).rejects.toMatchObject({
      outcome: 'none',
      retryAfterSeconds: 1,
    });
    expect(stateOf(writer)).toBe(before);
    expect(answer(await send(check('after', 0.02))).kind).toBe('check-allowed');
    expect(await reservations(store)).toEqual(['after']);
    expect(stateOf(writer)).toBe(await freshFold(store));
  });

  test('commands decided upon the failed batch are decided anew', async () => {
    const { store, writer, send } = await setting();
    await send(define(budget('all', '0.02')));
    const release = store.hold();
    store.faults.push('unavailable');
    const first = send(check('first', 0.02)).catch((error: unknown) => error);
    await store.untilHeld();
    // Refused if the first holds the money; it will not.
    const second = send(check('second', 0.02));
    await until(() => writer.counters().inFlight === 2);
    release();
    expect(await first).toMatchObject({ outcome: 'none' });
    expect(answer(await second).kind).toBe('check-allowed');
    expect(stateOf(writer)).toBe(await freshFold(store));
  });

  test('the log cannot be read after a conflict: it is tried again', async () => {
    const { inner, store, writer, send } = await setting();
    const rival = writerOn(inner);
    closings.push(() => rival.writer.close());
    store.intruder = async () => {
      await rival.send(check('stranger', 0.01));
    };
    store.faults.push('intruder', 'read unavailable');
    expect(answer(await send(check('mine', 0.01))).kind).toBe('check-allowed');
    expect(await reservations(store)).toEqual(['stranger', 'mine']);
    expect(stateOf(writer)).toBe(await freshFold(store));
  });

  test('answers without events are not given either', async () => {
    const { store, send } = await setting();
    store.faults.push('read unavailable');
    const release = send({
      type: 'ReleaseReservation',
      reservationId: 'rsv_0_000000000000',
    });
    await expect(release).rejects.toMatchObject({ outcome: 'none' });
  });
});

test('one command that the log refuses does not fail the others of its batch', async () => {
  const { store, writer, send } = await setting();
  store.refuses = ({ bytes }) => bytes.includes('poison');
  const names = Array.from({ length: 33 }, (_, i) =>
    i === 21 ? 'poison' : `r${String(i).padStart(2, '0')}`,
  );
  const outcomes = await Promise.allSettled(names.map((name) => send(check(name, 0.01))));
  expect(outcomes.flatMap(({ status }, i) => (status === 'rejected' ? [names[i]] : []))).toEqual(['poison']);
  expect(await reservations(store)).toEqual(names.filter((name) => name !== 'poison'));
  expect(writer.counters().refusals).toBeLessThanOrEqual(6);
  expect(stateOf(writer)).toBe(await freshFold(store));
});

test('two poisoned commands in one batch are both found', async () => {
  const { store, writer, send } = await setting();
  store.refuses = ({ bytes }) => bytes.includes('poison');
  const names = Array.from({ length: 16 }, (_, i) => ([3, 4].includes(i) ? `poison${i}` : `r${i}`));
  const outcomes = await Promise.allSettled(names.map((name) => send(check(name, 0.01))));
  expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(2);
  expect(await reservations(store)).toEqual(names.filter((name) => name.startsWith('r')));
  expect(stateOf(writer)).toBe(await freshFold(store));
});

test('rolling back leaves the state a fresh fold gives, whatever was in the batches', async () => {
  const { inner, store, writer, send } = await setting();
  await send(
    define(
      budget('all', '1', {
        setAsides: [{ match: { workload: 'report' }, amount: '0.5' }],
      }),
    ),
  );
  const reserved = answer(await send(check('held', 0.03)));
  if (reserved.kind !== 'check-allowed' || !reserved.reservation) throw new Error('not reserved');
  const { id } = reserved.reservation;
  const rival = writerOn(inner);
  closings.push(() => rival.writer.close());
  store.intruder = async () => {
    await rival.send(usage(id, 0.02));
  };
  store.faults.push('intruder');
  const outcomes = await Promise.all([
    send({ type: 'ExtendReservation', reservationId: id, ttlSeconds: 9_000 }),
    send(check('report', 0.01, { workload: 'report' })),
    send({ type: 'ReleaseReservation', reservationId: id }),
    send(define(budget('all', '2'))),
    send({ type: 'RetireBudget', id: 'all' }),
    send({ type: 'ChangeSettings', settings: { reservationTtlSeconds: 5 } }),
  ]);
  expect(outcomes.map((each) => (each.kind === 'answered' ? each.answer.kind : each.rejection.code))).toEqual(
    ['reservation_ended', 'check-allowed', 'reservation_ended', 'budget', 'budget-retired', 'settings'],
  );
  expect(stateOf(writer)).toBe(await freshFold(store));
});

test('a batch stays within its bytes', async () => {
  const { store, send } = await setting({ maxBatchBytes: 20_000 });
  await Promise.all(Array.from({ length: 100 }, (_, i) => send(check(`r${i}`, 0.01))));
  const sizes = store.appends.map(({ events }) => events.reduce((sum, { bytes }) => sum + bytes.length, 0));
  expect(Math.max(...sizes)).toBeLessThanOrEqual(20_000);
  expect(await reservations(store)).toHaveLength(100);
});

test('a full queue refuses at once', async () => {
  const { store, send } = await setting({
    maxQueuedCommands: 10,
    maxBatchCommands: 1,
  });
  const release = store.hold();
  const first = send(check('first', 0.01));
  await store.untilHeld();
  const more = Array.from({ length: 13 }, (_, i) => send(check(`r${i}`, 0.01)));
  const told = Promise.allSettled(more);
  await expect(more.at(-1)).rejects.toMatchObject({
    name: 'OverloadedError',
    retryAfterSeconds: 1,
  });
  release();
  await first;
  expect((await told).filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
});

test('conflicts without end are given up', async () => {
  const { inner, store, send, writer } = await setting({
    maxConflicts: 3,
    conflictPauseMs: 0,
  });
  const rival = writerOn(inner);
  closings.push(() => rival.writer.close());
  let strangers = 0;
  store.intruder = async () => {
    strangers += 1;
    await rival.send(check(`stranger${strangers}`, 0.01));
  };
  store.faults.push('intruder', 'intruder', 'intruder', 'intruder');
  await expect(send(check('mine', 0.01))).rejects.toMatchObject({
    name: 'OverloadedError',
  });
  expect(answer(await send(check('later', 0.01))).kind).toBe('check-allowed');
  expect(await reservations(store)).not.toContain('mine');
  expect(stateOf(writer)).toBe(await freshFold(store));
});

test('closing answers every accepted command, stores what is in flight, and refuses new ones', async () => {
  const { store, writer, send } = await setting();
  const release = store.hold();
  const first = send(check('first', 0.01));
  await store.untilHeld();
  const rest = Array.from({ length: 20 }, (_, i) => send(check(`r${i}`, 0.01)));
  const closed = writer.close();
  await expect(send(check('late', 0.01))).rejects.toMatchObject({
    outcome: 'none',
  });
  release();
  await closed;
  const outcomes = await Promise.all([first, ...rest]);
  expect(outcomes.map((each) => answer(each).kind)).toEqual(Array(21).fill('check-allowed'));
  expect(await reservations(store)).toHaveLength(21);
});

test('closing while the log does not answer ends in time, and tells what is certain', async () => {
  const { store, writer, send } = await setting({ closeWithinMs: 20 });
  const release = store.hold();
  const sent = send(check('sent', 0.01)).catch((error: unknown) => error);
  await store.untilHeld();
  const behind = send(check('behind', 0.01)).catch((error: unknown) => error);
  await until(() => writer.counters().inFlight === 2);
  await writer.close();
  expect(await sent).toMatchObject({ outcome: 'unknown' });
  expect(await behind).toMatchObject({ outcome: 'none' });
  release();
  await until(async () => (await reservations(store)).length === 1);
});

test('what cannot be decided fails alone', async () => {
  const { writer, send, store } = await setting();
  const [failed, fine] = await Promise.allSettled([
    send(define(budget('broken', 'not money'))),
    send(check('fine', 0.01)),
  ]);
  expect(failed).toMatchObject({
    status: 'rejected',
    reason: { name: 'RangeError' },
  });
  expect(fine).toMatchObject({
    status: 'fulfilled',
    value: { kind: 'answered' },
  });
  expect(stateOf(writer)).toBe(await freshFold(store));
});

describe('a log that is not what it was known to be', () => {
  async function twoLogs(events: number) {
    const [old, other] = [new InMemoryEventStore(), new InMemoryEventStore()];
    const elsewhere = writerOn(other);
    await elsewhere.send(OPEN);
    for (let i = 0; i < events; i += 1) await elsewhere.send(check(`other${i}`, 0.01));
    await elsewhere.writer.close();
    const store = new FaultyStore(old);
    const made = writerOn(store, {
      options: { outagePauseMs: 1, conflictPauseMs: 0 },
    });
    closings.push(() => made.writer.close());
    await made.send(OPEN);
    for (let i = 0; i < 3; i += 1) await made.send(check(`old${i}`, 0.01));
    store.swap(other);
    return { store, ...made };
  }

  test.each([
    ['ends earlier', 1],
    ['goes on differently', 10],
  ])('%s: it is loaded anew, and commands are decided on what it is', async (_what, events) => {
    const { store, send, writer } = await twoLogs(events);
    await expect(send(check('old0', 0.01))).rejects.toMatchObject({
      outcome: 'none',
    });
    expect(answer(await send(check('old0', 0.01))).kind).toBe('check-allowed');
    expect(answer(await send(check('new', 0.01))).kind).toBe('check-allowed');
    expect(await reservations(store)).toEqual([
      ...Array.from({ length: events }, (_, i) => `other${i}`),
      'old0',
      'new',
    ]);
    expect(stateOf(writer)).toBe(await freshFold(store));
  });
});

describe('loading', () => {
  test('a snapshot and the events after it give the state of the whole log', async () => {
    const store = new InMemoryEventStore();
    const storage = new KeptStorage();
    const options = { snapshotEvents: 100, snapshotMinEvents: 20 };
    const first = writerOn(store, { storage, options });
    await first.send(OPEN);
    await first.send(define(budget('all', '3', { each: ['subject'] })));
    for (let round = 0; round < 10; round += 1) {
      await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          first.send(check(`r${round}-${i}`, 0.01, { subject: `visitor${i % 3}` })),
        ),
      );
    }
    await until(() => storage.snapshots.length > 0);
    await first.writer.close();
    const [snapshot] = storage.snapshots;
    const second = writerOn(store, {
      storage,
      options: { snapshotMinEvents: 1e9, snapshotEvents: 1e9 },
    });
    await second.writer.ready();
    expect(snapshot?.hash).toBe((await wholeLog(store))[snapshot?.revision ?? 0]?.metadata.hash);
    expect(stateOf(second.writer)).toBe(await freshFold(store));
    await second.writer.close();
  });

  test('casebook 40: a snapshot that is not of this log is dropped, and the log is folded', async () => {
    const store = new InMemoryEventStore();
    const storage = new KeptStorage();
    const first = writerOn(store, { storage, options: { snapshotEvents: 5 } });
    await first.send(OPEN);
    await first.send(check('one', 0.01));
    await first.send(check('two', 0.01));
    await first.send(check('three', 0.01));
    await until(() => storage.snapshots.length > 0);
    await first.writer.close();
    const [snapshot] = storage.snapshots;
    if (!snapshot) throw new Error('no snapshot');
    storage.snapshots.splice(0, 1, { ...snapshot, hash: 'f'.repeat(64) });
    const second = writerOn(store, { storage });
    await second.writer.ready();
    expect(storage.snapshots).toEqual([]);
    expect(stateOf(second.writer)).toBe(await freshFold(store));
    await second.writer.close();
    storage.snapshots.push({ ...snapshot, body: Buffer.from('no gzip') });
    const third = writerOn(store, { storage });
    await third.writer.ready();
    expect(stateOf(third.writer)).toBe(await freshFold(store));
    await third.writer.close();
  });

  test('casebook 40: a snapshot never holds what is not durable', async () => {
    const store = new FaultyStore(new InMemoryEventStore());
    const storage = new KeptStorage();
    const { writer, send } = writerOn(store, {
      storage,
      options: { snapshotEvents: 20, snapshotMinEvents: 20 },
    });
    closings.push(() => writer.close());
    await send(OPEN);
    store.faults.push('unavailable');
    await Promise.allSettled(Array.from({ length: 300 }, (_, i) => send(check(`r${i}`, 0.01))));
    await Promise.allSettled(Array.from({ length: 300 }, (_, i) => send(check(`s${i}`, 0.01))));
    await until(() => storage.snapshots.length >= 1);
    for (const snapshot of storage.snapshots) {
      const log = await wholeLog(store);
      expect(log[snapshot.revision]?.metadata.hash).toBe(snapshot.hash);
    }
    await writer.close();
    const again = writerOn(store, { storage });
    await again.writer.ready();
    expect(stateOf(again.writer)).toBe(await freshFold(store));
    await again.writer.close();
  });

  test('commands that come while the log cannot be read wait, and are decided when it can', async () => {
    const store = new FaultyStore(new InMemoryEventStore());
    store.faults.push('read unavailable', 'read unavailable');
    const { writer, send } = writerOn(store, { options: { outagePauseMs: 1 } });
    closings.push(() => writer.close());
    expect(answer(await send(OPEN)).kind).toBe('settings');
  });
});
