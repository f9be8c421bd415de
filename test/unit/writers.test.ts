import { InMemoryEventStore } from '../../src/event-store/memory/in-memory-event-store';
import type { LedgerWriter } from '../../src/writer/ledger-writer';
import { LEDGER_DECIDER } from '../../src/writer/ledger-decider';
import { Writers } from '../../src/writer/writers';
import { catalogue, check } from './domain/ledger-spec';
import { FaultyStore } from './faulty-store';
import { KeptStorage, OPEN, TestClock, answer, origin, quietLog, until } from './writer-setting';

function setting(unloadAfterIdleMs?: number) {
  const store = new FaultyStore(new InMemoryEventStore());
  const storage = new KeptStorage();
  const make = () =>
    new Writers({
      store,
      storage,
      clock: new TestClock(),
      catalogue,
      decider: LEDGER_DECIDER,
      log: quietLog,
      ...(unloadAfterIdleMs !== undefined && { unloadAfterIdleMs }),
    });
  return { store, storage, make, writers: make() };
}

test('only opening makes a ledger, and it is registered before its first event', async () => {
  const { store, storage, writers } = setting();
  const told = await writers.submit('team-a', check('r', 0.01), origin());
  expect(told).toMatchObject({
    kind: 'rejected',
    rejection: { code: 'ledger_not_found' },
  });
  expect(await writers.submit('Not A Slug', OPEN, origin())).toMatchObject({
    rejection: { code: 'ledger_not_found' },
  });
  expect(storage.registered).toEqual(new Set());
  const release = store.hold();
  const opening = writers.submit('team-a', OPEN, origin());
  await store.untilHeld();
  expect(storage.registered).toEqual(new Set(['team-a']));
  expect(await writers.ledgers()).toEqual([]);
  release();
  expect(answer(await opening).kind).toBe('settings');
  expect(await writers.ledgers()).toEqual(['team-a']);
  await writers.close();
});

test('ledgers do not know of each other', async () => {
  const { writers } = setting();
  const told: string[] = [];
  writers.onConfirmed((events) =>
    told.push(...events.map(({ ledger, revision }) => `${ledger}:${revision}`)),
  );
  await Promise.all(['a', 'b'].map((ledger) => writers.submit(ledger, OPEN, origin())));
  const same = check('same', 0.01);
  const outcomes = await Promise.all(['a', 'b'].map((ledger) => writers.submit(ledger, same, origin())));
  expect(outcomes).toMatchObject([{ replayed: false }, { replayed: false }]);
  expect([...told].sort()).toEqual(['a:0', 'a:1', 'a:2', 'a:3', 'b:0', 'b:1', 'b:2', 'b:3']);
  await writers.close();
});

test('a new process finds the ledgers there are', async () => {
  const { writers, make } = setting();
  await writers.submit('a', OPEN, origin());
  await writers.submit('a', check('r', 0.01), origin());
  await writers.close();
  await expect(writers.submit('a', check('s', 0.01), origin())).rejects.toMatchObject({ outcome: 'none' });
  const next = make();
  await next.openAll();
  expect([...next.loaded().keys()]).toEqual(['a']);
  const again = await next.submit('a', check('r', 0.01), origin());
  expect(again).toMatchObject({ kind: 'answered', replayed: true });
  await next.close();
});

test('a log that cannot be asked whether a ledger exists is told as such', async () => {
  const { store, writers } = setting();
  store.head = () => Promise.reject(new Error('no connection'));
  await expect(writers.submit('a', check('r', 0.01), origin())).rejects.toMatchObject({
    name: 'LogUnavailableError',
    outcome: 'none',
  });
  await writers.close();
});

test('an idle ledger leaves memory unless something is held in it, and comes back when asked', async () => {
  const { writers } = setting(1);
  await writers.submit('idle', OPEN, origin());
  await writers.submit('holding', OPEN, origin());
  await writers.submit('holding', check('r', 0.01), origin());
  await until(() => !writers.loaded().has('idle'));
  expect([...writers.loaded().keys()]).toEqual(['holding']);
  const writer: LedgerWriter | undefined = await writers.open('idle');
  await writer?.ready();
  expect(writer?.confirmed().revision).toBe(0);
  await writers.close();
});
