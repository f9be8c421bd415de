import { randomUUID } from 'node:crypto';
import { EMPTY } from '../../src/event-store/event-store';
import type { EventStore, SealedEvent, StoredEvent } from '../../src/event-store/event-store';

export function event(revision: number, text = `{"n":${revision}}`, at = 1_000 + revision): SealedEvent {
  return { id: randomUUID(), type: 'SpendEstimated', revision, at, bytes: Buffer.from(text, 'utf8') };
}

export const batch = (from: number, count: number): SealedEvent[] =>
  Array.from({ length: count }, (_, i) => event(from + i));

const ids = (events: readonly SealedEvent[]): string[] => events.map(({ id }) => id);

/** Signals that end with their test, also with a failed one: what still reads would keep the run from ending. */
export function endingWithTheTest(): () => AbortController {
  const given: AbortController[] = [];
  afterEach(() => {
    for (const abort of given.splice(0)) abort.abort();
  });
  return () => {
    const abort = new AbortController();
    given.push(abort);
    return abort;
  };
}

/** Reads a subscription until it has so many events. */
export async function take(source: AsyncIterable<StoredEvent[]>, count: number): Promise<StoredEvent[]> {
  const taken: StoredEvent[] = [];
  for await (const events of source) {
    taken.push(...events);
    if (taken.length >= count) break;
  }
  return taken;
}

/** What every adapter of the log must do. `open` gives a store of its own on the same log each time it is called. */
export function eventStoreContract(open: () => Promise<EventStore>): void {
  let store: EventStore;
  let ledger: string;
  const ending = endingWithTheTest();

  beforeAll(async () => {
    store = await open();
  });

  beforeEach(() => {
    ledger = `l-${randomUUID().slice(0, 8)}`;
  });

  it('appends at the expected revision and nowhere else', async () => {
    const first = batch(0, 3);
    expect((await store.append(ledger, EMPTY, first)).kind).toBe('appended');
    expect((await store.append(ledger, EMPTY, batch(0, 1))).kind).toBe('conflict');
    expect((await store.append(ledger, 1, batch(2, 2))).kind).toBe('conflict');
    expect((await store.append(ledger, 7, batch(8, 1))).kind).toBe('conflict');
    expect((await store.append(ledger, 2, batch(3, 1))).kind).toBe('appended');
    const stored = await store.read(ledger);
    expect(stored.map(({ revision }) => revision)).toEqual([0, 1, 2, 3]);
    expect(ids(stored.slice(0, 3))).toEqual(ids(first));
  });

  it('refuses a batch that is empty, or whose events say other revisions than they would get', async () => {
    const refused = expect.objectContaining({ name: 'AppendRefusedError' }) as Error;
    await expect(store.append(ledger, EMPTY, [])).rejects.toEqual(refused);
    await expect(store.append(ledger, EMPTY, [event(0), event(2)])).rejects.toEqual(refused);
    await expect(store.append(ledger, EMPTY, batch(1, 1))).rejects.toEqual(refused);
    expect(await store.head(ledger)).toBeUndefined();
  });

  it('an unknown stream is empty', async () => {
    expect(await store.read(ledger)).toEqual([]);
    expect(await store.head(ledger)).toBeUndefined();
    expect(await store.revisionAt(ledger, 0)).toBe(0);
  });

  it('of many appends at one revision exactly one is stored, whole (casebook 39)', async () => {
    const rivals = Array.from({ length: 8 }, () => batch(0, 5));
    const results = await Promise.all(rivals.map((events) => store.append(ledger, EMPTY, events)));
    expect(results.filter(({ kind }) => kind === 'appended')).toHaveLength(1);
    const winner = rivals[results.findIndex(({ kind }) => kind === 'appended')] ?? [];
    expect(ids(await store.read(ledger))).toEqual(ids(winner));
  });

  it('instances that race for every revision store each batch once, in one order (casebook 39)', async () => {
    const instances = [store, await open(), await open()];
    const rounds = 10;
    /** Appends its batches one after another, each where the log ends by then; returns their ids in that order. */
    const race = async (instance: EventStore): Promise<string[]> => {
      const stored: string[] = [];
      while (stored.length < rounds * 3) {
        const end = (await instance.head(ledger))?.revision ?? EMPTY;
        const events = batch(end + 1, 3);
        if ((await instance.append(ledger, end, events)).kind === 'appended') stored.push(...ids(events));
      }
      return stored;
    };
    const told = await Promise.all(instances.map(race));
    const log = await store.read(ledger);
    expect(log.map(({ revision }) => revision)).toEqual(
      Array.from({ length: rounds * 3 * instances.length }, (_, n) => n),
    );
    for (const stored of told) expect(ids(log).filter((id) => stored.includes(id))).toEqual(stored);
  });

  it('keeps the exact bytes, times and types', async () => {
    const odd = event(0, '{"text":"é 😀 \\u0001 \u2028 漢字 \u{10FFFF}"}', 1_796_040_000_123);
    const large = event(1, JSON.stringify('x'.repeat(1_000_000)), 1_796_040_000_123);
    await store.append(ledger, EMPTY, [odd, large]);
    const stored = await store.read(ledger);
    // As whole buffers: compared element by element, a megabyte takes seconds.
    expect(stored.map(({ bytes }, i) => bytes.equals([odd, large][i]?.bytes ?? bytes.subarray(1)))).toEqual([
      true,
      true,
    ]);
    expect(stored.map(({ id, type, revision, at }) => ({ id, type, revision, at }))).toEqual(
      [odd, large].map(({ id, type, revision, at }) => ({ id, type, revision, at })),
    );
  });

  it('reads any range both ways', async () => {
    await store.append(ledger, EMPTY, batch(0, 10));
    const revisions = async (options: Parameters<EventStore['read']>[1]) =>
      (await store.read(ledger, options)).map(({ revision }) => revision);
    expect(await revisions({ from: 4, limit: 3 })).toEqual([4, 5, 6]);
    expect(await revisions({ from: 8, limit: 5 })).toEqual([8, 9]);
    expect(await revisions({ from: 10 })).toEqual([]);
    expect(await revisions({ direction: 'backwards', limit: 2 })).toEqual([9, 8]);
    expect(await revisions({ direction: 'backwards', from: 1 })).toEqual([1, 0]);
    expect(await revisions({ direction: 'backwards', from: 20, limit: 1 })).toEqual([9]);
    expect(await revisions({ direction: 'backwards', from: EMPTY })).toEqual([]);
    expect(await revisions({ direction: 'backwards', from: -2 })).toEqual([]);
    expect(await revisions({ from: 3, limit: 0 })).toEqual([]);
    expect(await store.head(ledger)).toEqual({ revision: 9, at: 1_009 });
  });

  it('finds the first revision at or after a moment, also among equal times', async () => {
    const times = [100, 200, 200, 200, 300];
    await store.append(
      ledger,
      EMPTY,
      times.map((at, i) => event(i, '{}', at)),
    );
    const found = await Promise.all(
      [0, 100, 101, 200, 201, 300, 301].map((at) => store.revisionAt(ledger, at)),
    );
    expect(found).toEqual([0, 0, 1, 1, 4, 4, 5]);
  });

  it('appending the same bytes again is a conflict, and the ids show whose they are', async () => {
    const events = batch(0, 4);
    await store.append(ledger, EMPTY, events);
    expect((await store.append(ledger, EMPTY, events)).kind).toBe('conflict');
    expect(ids(await store.read(ledger))).toEqual(ids(events));
  });

  it('ledgers do not see each other', async () => {
    await store.append(ledger, EMPTY, batch(0, 2));
    expect(await store.read(`${ledger}-other`)).toEqual([]);
    expect((await store.append(`${ledger}-other`, EMPTY, batch(0, 1))).kind).toBe('appended');
  });

  it('a subscription catches up and goes live without gap or duplicate while others write (casebook 34)', async () => {
    await store.append(ledger, EMPTY, batch(0, 50));
    const abort = ending();
    const readers = [0, 0, 25].map((from) =>
      take(store.subscribe(ledger, { from, signal: abort.signal, batchSize: 7 }), 200 - from),
    );
    for (let revision = 50; revision < 200; revision += 5) {
      await store.append(ledger, revision - 1, batch(revision, 5));
      store.wake(ledger);
    }
    const seen = await Promise.all(readers);
    abort.abort();
    seen.forEach((events, i) => {
      const from = [0, 0, 25][i] ?? 0;
      expect(events.map(({ revision }) => revision)).toEqual(
        Array.from({ length: 200 - from }, (_, n) => from + n),
      );
    });
  });

  it('a slow consumer gets every event, at its own pace', async () => {
    const abort = ending();
    const seen: number[] = [];
    const reading = (async () => {
      for await (const events of store.subscribe(ledger, { from: 0, signal: abort.signal, batchSize: 3 })) {
        await new Promise((resolve) => setImmediate(resolve));
        seen.push(...events.map(({ revision }) => revision));
        if (seen.length >= 40) break;
      }
    })();
    for (let revision = 0; revision < 40; revision += 4) {
      await store.append(ledger, revision - 1, batch(revision, 4));
      store.wake(ledger);
    }
    await reading;
    expect(seen).toEqual(Array.from({ length: 40 }, (_, n) => n));
  });

  it('a subscription ends with its signal', async () => {
    const abort = ending();
    const reading = take(store.subscribe(ledger, { from: 0, signal: abort.signal }), 1);
    abort.abort();
    expect(await reading).toEqual([]);
  });

  it('a live subscription ends with its signal, and tells once of each state it comes to', async () => {
    await store.append(ledger, EMPTY, batch(0, 1));
    const abort = ending();
    const states: string[] = [];
    const onState = (state: string): void => {
      states.push(state);
      if (state === 'live') abort.abort();
    };
    const reading = take(store.subscribe(ledger, { from: 0, signal: abort.signal, onState }), 2);
    expect((await reading).map(({ revision }) => revision)).toEqual([0]);
    expect(states).toEqual(['catching-up', 'live']);
  });

  it('hears of what another instance appended', async () => {
    const other = await open();
    const abort = ending();
    const reading = take(store.subscribe(ledger, { from: 0, signal: abort.signal }), 2);
    await other.append(ledger, EMPTY, batch(0, 2));
    other.wake(ledger);
    expect((await reading).map(({ revision }) => revision)).toEqual([0, 1]);
    abort.abort();
  });
}
