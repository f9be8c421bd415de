import { InMemoryEventStore } from '../../src/event-store/memory/in-memory-event-store';
import { budget, check, usage } from './domain/ledger-spec';
import { FaultyStore } from './faulty-store';
import {
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

function setting(...[parts]: [Parameters<typeof writerOn>[1]?]) {
  const store = new FaultyStore(new InMemoryEventStore());
  const made = writerOn(store, parts);
  closings.push(() => made.writer.close());
  return { store, ...made };
}

const allowed = (outcomes: readonly Awaited<ReturnType<ReturnType<typeof writerOn>['send']>>[]) =>
  outcomes.filter((each) => answer(each).kind === 'check-allowed').length;

test('casebook 1: of 200 concurrent checks exactly the 46 pass that the budget has room for', async () => {
  const { store, writer, send } = setting();
  await send(OPEN);
  await send(define(budget('all', '0.46')));
  const outcomes = await Promise.all(Array.from({ length: 200 }, (_, i) => send(check(`r${i}`, 0.01))));
  expect(allowed(outcomes)).toBe(46);
  expect(stateOf(writer)).toBe(await freshFold(store));
});

test('casebook 3: two writers of one ledger let exactly 46 of 200 checks pass together', async () => {
  const store = new FaultyStore(new InMemoryEventStore());
  const one = writerOn(store, {
    options: { maxBatchCommands: 8, maxConflicts: 1_000 },
  });
  const two = writerOn(store, {
    options: { maxBatchCommands: 8, maxConflicts: 1_000 },
  });
  closings.push(
    () => one.writer.close(),
    () => two.writer.close(),
  );
  await one.send(OPEN);
  await one.send(define(budget('all', '0.46')));
  const outcomes = await Promise.all(
    Array.from({ length: 200 }, (_, i) => (i % 2 ? one : two).send(check(`r${i}`, 0.01))),
  );
  expect(allowed(outcomes)).toBe(46);
  const log = await wholeLog(store);
  expect(log.map(({ revision }) => revision)).toEqual(log.map((_, i) => i));
  expect(log.filter(({ type }) => type === 'SpendReserved')).toHaveLength(46);
  expect(log.filter(({ type }) => type === 'SpendRefused')).toHaveLength(154);
  await until(() => one.writer.counters().inFlight + two.writer.counters().inFlight === 0);
  for (const { writer } of [one, two]) {
    const seen = writer.confirmed().revision;
    if (seen === log.length - 1) expect(stateOf(writer)).toBe(await freshFold(store));
  }
  expect(one.writer.counters().conflicts + two.writer.counters().conflicts).toBeGreaterThan(0);
});

test('the log of two writers is one chain of hashes', async () => {
  const store = new InMemoryEventStore();
  const [one, two] = [writerOn(store), writerOn(store)];
  closings.push(
    () => one.writer.close(),
    () => two.writer.close(),
  );
  await one.send(OPEN);
  await Promise.all(Array.from({ length: 60 }, (_, i) => (i % 2 ? one : two).send(check(`r${i}`, 0.01))));
  let previous = '0'.repeat(64);
  for (const { metadata } of await wholeLog(store)) {
    expect(metadata.previousHash).toBe(previous);
    previous = metadata.hash;
  }
});

test('nothing is answered before it is durable', async () => {
  const { store, send } = setting();
  await send(OPEN);
  await send(define(budget('all', '0.01')));
  const release = store.hold();
  const told: string[] = [];
  const passing = send(check('first', 0.01)).then(() => told.push('first'));
  await store.untilHeld();
  // Judged on what is being stored: refused because of it, repeated because of it, unknown without it.
  const refused = send(check('second', 0.01)).then(() => told.push('second'));
  const repeated = send(check('first', 0.01)).then(() => told.push('repeat'));
  const unknown = send({
    type: 'ReleaseReservation',
    reservationId: 'rsv_9_000000000000',
  }).then(() => told.push('unknown'));
  for (let i = 0; i < 20; i += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(told).toEqual([]);
  release();
  await Promise.all([passing, refused, repeated, unknown]);
  expect(told[0]).toBe('first');
  expect(told).toHaveLength(4);
});

test('the next batch is decided while one is being stored', async () => {
  const { store, writer, send } = setting();
  await send(OPEN);
  const release = store.hold();
  const first = send(check('first', 0.01));
  await store.untilHeld();
  const more = Array.from({ length: 30 }, (_, i) => send(check(`r${i}`, 0.01)));
  await until(() => writer.counters().inFlight === 31);
  expect(writer.counters().queued).toBe(0);
  expect(writer.confirmed().revision).toBe(0);
  const before = store.appends.length;
  release();
  await Promise.all([first, ...more]);
  expect(store.appends.length - before).toBe(1);
  expect(stateOf(writer)).toBe(await freshFold(store));
});

test('casebook 17: concurrent twins: one is decided, the other gets its answer, marked', async () => {
  const { send } = setting();
  await send(OPEN);
  const [one, two] = await Promise.all([send(check('twin', 0.01)), send(check('twin', 0.01))]);
  expect(one).toMatchObject({ kind: 'answered', replayed: false });
  expect(two).toMatchObject({ kind: 'answered', replayed: true });
  expect(JSON.stringify(answer(two))).toBe(JSON.stringify(answer(one)));
});

test('a repeat whose event has left memory is answered from the log', async () => {
  const { send, writer } = setting({ options: { recentEvents: 4 } });
  await send(OPEN);
  const first = await send(check('early', 0.01));
  for (let i = 0; i < 5; i += 1) await send(check(`r${i}`, 0.01));
  const { position } = answer(first);
  expect(writer.recent.get(position)).toBeUndefined();
  const again = await send(check('early', 0.01));
  expect(again).toMatchObject({ kind: 'answered', replayed: true });
  expect(JSON.stringify(answer(again))).toBe(JSON.stringify(answer(first)));
});

test('a command that another process made possible is not answered from a stale state', async () => {
  const store = new InMemoryEventStore();
  const one = writerOn(store);
  const two = writerOn(store);
  closings.push(
    () => one.writer.close(),
    () => two.writer.close(),
  );
  await one.send(OPEN);
  await two.writer.ready();
  const reserved = answer(await one.send(check('elsewhere', 0.02)));
  if (reserved.kind !== 'check-allowed' || !reserved.reservation) throw new Error('not reserved');
  // Without a look at the log this would be "no such reservation".
  const charged = await two.send(usage(reserved.reservation.id, 0.01));
  expect(charged).toMatchObject({
    kind: 'answered',
    answer: { kind: 'usage-recorded', charged: '0.01' },
  });
  // And this would be a replay of "allowed", though the money is spent.
  const repeat = await one.send(check('elsewhere', 0.02));
  expect(repeat).toMatchObject({
    kind: 'rejected',
    rejection: { code: 'reservation_ended' },
  });
});

test('commands are decided in the order in which they came, also after conflicts', async () => {
  const inner = new InMemoryEventStore();
  const store = new FaultyStore(inner);
  const { writer, send } = writerOn(store, {
    options: { maxBatchCommands: 4 },
  });
  const rival = writerOn(inner);
  closings.push(
    () => writer.close(),
    () => rival.writer.close(),
  );
  await send(OPEN);
  let strangers = 0;
  store.intruder = async () => {
    strangers += 1;
    await rival.send(check(`stranger${strangers}`, 0.01));
  };
  store.faults.push('intruder', 'intruder');
  await Promise.all(
    Array.from({ length: 20 }, (_, i) => send(check(`r${String(i).padStart(2, '0')}`, 0.01))),
  );
  const order = (await wholeLog(store)).flatMap((event) =>
    event.type === 'SpendReserved' && event.data.requestId.startsWith('r') ? [event.data.requestId] : [],
  );
  expect(order).toEqual([...order].sort());
  expect(order).toHaveLength(20);
  expect(strangers).toBe(2);
  expect(stateOf(writer)).toBe(await freshFold(store));
});

test('a process with one client makes progress beside one that never rests', async () => {
  const store = new InMemoryEventStore();
  const busy = writerOn(store, { options: { maxConflicts: 1_000 } });
  const quiet = writerOn(store);
  closings.push(
    () => busy.writer.close(),
    () => quiet.writer.close(),
  );
  await busy.send(OPEN);
  let going = true;
  let sent = 0;
  const load = Array.from({ length: 16 }, async (_, client) => {
    while (going) {
      sent += 1;
      await busy.send(check(`b${client}-${sent}`, 0.000001));
    }
  });
  for (let i = 0; i < 10; i += 1) {
    expect(answer(await quiet.send(check(`q${i}`, 0.000001))).kind).toBe('check-allowed');
  }
  going = false;
  await Promise.all(load);
  expect(sent).toBeGreaterThan(50);
});

test('time never goes back: events are booked at their predecessor’s moment, checks wait for the clock', async () => {
  const clock = new TestClock();
  const { store, send } = setting({ clock });
  await send(OPEN);
  const reserved = answer(await send(check('before', 0.02)));
  if (reserved.kind !== 'check-allowed' || !reserved.reservation) throw new Error('not reserved');
  clock.nowMs -= 5_000;
  expect(answer(await send(check('within five seconds', 0.01))).kind).toBe('check-allowed');
  clock.nowMs -= 1;
  expect(await send(check('further', 0.01))).toMatchObject({
    kind: 'rejected',
    rejection: { code: 'clock_skew', retryAfterSeconds: 6 },
  });
  expect(answer(await send(usage(reserved.reservation.id, 0.01))).kind).toBe('usage-recorded');
  const log = await wholeLog(store);
  expect(new Set(log.map(({ at }) => at))).toEqual(new Set(['2026-11-30T12:00:00.000Z']));
});

test('a clock that was not compared with the store lately is asked before anything is decided', async () => {
  const clock = new TestClock();
  const { send, store } = setting({ clock });
  await send(OPEN);
  clock.fresh = false;
  const refresh = clock.refresh.bind(clock);
  clock.refresh = () => {
    clock.nowMs += 60_000;
    return refresh();
  };
  await send(check('after a pause', 0.01));
  expect((await wholeLog(store)).at(-1)?.at).toBe('2026-11-30T12:01:00.000Z');
});

test('a ledger without events is not found, and is made by opening it', async () => {
  const { send } = setting();
  expect(await send(check('nobody', 0.01))).toMatchObject({
    kind: 'rejected',
    rejection: { code: 'ledger_not_found' },
  });
  expect(answer(await send(OPEN)).kind).toBe('settings');
  expect(answer(await send(check('somebody', 0.01))).kind).toBe('check-allowed');
});

test('confirmed events are told in order, without gap, those of others included', async () => {
  const store = new InMemoryEventStore();
  const one = writerOn(store);
  const two = writerOn(store);
  closings.push(
    () => one.writer.close(),
    () => two.writer.close(),
  );
  await one.writer.ready();
  const told: number[] = [];
  one.writer.onConfirmed((events) => told.push(...events.map(({ revision }) => revision)));
  await one.send(OPEN);
  for (let i = 0; i < 10; i += 1) await (i % 2 ? one : two).send(check(`r${i}`, 0.01));
  const head = (await wholeLog(store)).length - 1;
  expect(await one.writer.waitForRevision(head, 1_000)).toBe(true);
  expect(told).toEqual(Array.from({ length: head + 1 }, (_, i) => i));
  expect(one.writer.recent.from(3, 2)?.map(({ revision }) => revision)).toEqual([3, 4]);
  expect(await one.writer.waitForRevision(head + 1, 5)).toBe(false);
});

test('an idle writer follows what others write', async () => {
  const store = new InMemoryEventStore();
  const writing = writerOn(store);
  const idle = writerOn(store, { options: { followAfterIdleMs: 1 } });
  closings.push(
    () => writing.writer.close(),
    () => idle.writer.close(),
  );
  await writing.send(OPEN);
  await writing.send(check('one', 0.01));
  const { revision } = writing.writer.confirmed();
  expect(await idle.writer.waitForRevision(revision, 5_000)).toBe(true);
  await idle.send(check('two', 0.01));
  expect(idle.writer.counters().conflicts).toBe(0);
});
