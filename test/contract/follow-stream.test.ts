import { StoreUnavailableError } from '../../src/event-store/event-store';
import type { StoredEvent } from '../../src/event-store/event-store';
import { followStream } from '../../src/event-store/follow-stream';
import { WakeUps } from '../../src/event-store/wake-ups';
import { batch, endingWithTheTest, take } from './event-store.contract';

/** A day: whoever waits for it was not woken. */
const NEVER_MS = 86_400_000;

describe('following a stream', () => {
  const ending = endingWithTheTest();
  const log = batch(0, 5);
  const page = (from: number, limit: number): StoredEvent[] => log.slice(from, from + limit);

  it('goes on where it was after reads that failed, and tells of the loss and of the recovery (casebook 38)', async () => {
    const abort = ending();
    const states: [string, unknown][] = [];
    const faults = [new StoreUnavailableError('cut'), new StoreUnavailableError('cut')];
    let reads = 0;
    const stream = followStream({
      options: {
        from: 1,
        batchSize: 2,
        signal: abort.signal,
        onState: (state, error) => {
          states.push([state, error]);
          if (state === 'live') abort.abort();
        },
      },
      read: (from, limit) => {
        reads += 1;
        const fault = reads > 1 ? faults.shift() : undefined;
        return fault ? Promise.reject(fault) : Promise.resolve(page(from, limit));
      },
      wakeUps: new WakeUps().of('main'),
      pollMs: NEVER_MS,
    });
    expect((await take(stream, 9)).map(({ revision }) => revision)).toEqual([1, 2, 3, 4]);
    expect(states).toEqual([
      ['catching-up', undefined],
      ['lost', expect.any(StoreUnavailableError)],
      ['catching-up', undefined],
      ['live', undefined],
    ]);
  });

  it('news that comes while a page is read is not slept over', async () => {
    const wakeUps = new WakeUps();
    const shown = [log.slice(0, 1), [], log.slice(1, 2)];
    const stream = followStream({
      options: { from: 0, signal: ending().signal },
      read: () => {
        const found = shown.shift() ?? [];
        // The second event is stored and told of just after the page was read without it.
        if (found.length === 0) wakeUps.wake('main');
        return Promise.resolve(found);
      },
      wakeUps: wakeUps.of('main'),
      pollMs: NEVER_MS,
    });
    expect((await take(stream, 2)).map(({ revision }) => revision)).toEqual([0, 1]);
  });

  it('reads a page only when the one before was taken', async () => {
    let reads = 0;
    const stream = followStream({
      options: { from: 0, batchSize: 1, signal: ending().signal },
      read: (from, limit) => {
        reads += 1;
        return Promise.resolve(page(from, limit));
      },
      wakeUps: new WakeUps().of('main'),
    });
    for (const taken of [1, 2, 3]) {
      await stream.next();
      expect(reads).toBe(taken);
    }
    await stream.return(undefined);
  });

  it('leaves nothing behind when its reader goes away', async () => {
    let listeners = 0;
    const abort = ending();
    const stream = followStream({
      options: { from: 0, signal: abort.signal },
      read: (from, limit) => Promise.resolve(page(from, limit)),
      wakeUps: () => {
        listeners += 1;
        return () => {
          listeners -= 1;
        };
      },
    });
    await take(stream, 1);
    expect(listeners).toBe(0);
  });
});
