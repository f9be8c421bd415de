import type { StoredEvent } from '../../src/event-store/event-store';
import { atMost, jsonPage, ndjson, serverSentEvents } from '../../src/http/reads/event-streams';
import { OpenStreams } from '../../src/http/reads/open-streams';
import * as schemas from '../../src/http/reads/query-schemas';
import { runsOf } from '../../src/queries/events/runs';

const event = (revision: number): StoredEvent => ({
  id: `e${String(revision)}`,
  type: 'SpendReserved',
  revision,
  at: revision,
  bytes: Buffer.from(`{"revision":${String(revision)}}`),
});

async function* batches(...of: number[][]): AsyncGenerator<StoredEvent[]> {
  for (const revisions of of) yield await Promise.resolve(revisions.map(event));
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe('streams of events', () => {
  test('a limit cuts a batch and reads no further', async () => {
    let asked = 0;
    async function* counted(): AsyncGenerator<StoredEvent[]> {
      for (;;) {
        asked += 1;
        yield await Promise.resolve([event(asked * 2), event(asked * 2 + 1)]);
      }
    }
    const taken = (await all(atMost(counted(), 3))).flat();
    expect(taken.map(({ revision }) => revision)).toEqual([2, 3, 4]);
    expect(asked).toBe(2);
  });

  test('NDJSON and JSON hold the stored bytes', async () => {
    const lines = Buffer.concat(await all(ndjson(batches([0, 1], [2])))).toString();
    expect(lines).toBe('{"revision":0}\n{"revision":1}\n{"revision":2}\n');
    expect(jsonPage([event(0), event(1)], '1').toString()).toBe(
      '{"data":[{"revision":0},{"revision":1}],"nextCursor":"1"}',
    );
    expect(jsonPage([], undefined).toString()).toBe('{"data":[]}');
  });

  test('a live stream says something while nothing happens, and ends its source when it is cut off', async () => {
    let hasEnded = false;
    let tell: (() => void) | undefined;
    async function* slow(): AsyncGenerator<StoredEvent[]> {
      try {
        await new Promise<void>((resolve) => (tell = resolve));
        yield [event(7)];
        yield [event(8)];
      } finally {
        hasEnded = true;
      }
    }
    const messages = serverSentEvents(slow(), 5);
    expect((await messages.next()).value).toBe('retry: 1000\n: following\n\n');
    expect((await messages.next()).value).toBe(': heartbeat\n\n');
    tell?.();
    expect((await messages.next()).value).toBe('id: 7\nevent: SpendReserved\ndata: {"revision":7}\n\n');
    await messages.return(undefined);
    expect(hasEnded).toBe(true);
  });

  test('open streams are bounded, give their place back, and end with the service', () => {
    const streams = new OpenStreams();
    const opened = Array.from({ length: 256 }, () => streams.begin());
    expect(() => streams.begin()).toThrow('too many live streams');
    opened[0]?.abort();
    const another = streams.begin();
    streams.closeAll();
    expect(another.signal.aborted).toBe(true);
  });
});

describe('reading scattered revisions', () => {
  test('near ones are read in one go, far ones apart', () => {
    expect(runsOf([1, 2, 3, 20, 53, 86, 87])).toEqual([
      { from: 1, to: 20 },
      { from: 53, to: 53 },
      { from: 86, to: 87 },
    ]);
    expect(runsOf([])).toEqual([]);
  });
});

describe('query strings', () => {
  test('tags of a headroom question are its tag.<key> fields; anything else is a fault by name', () => {
    const read = schemas.headroom.safeParse({ workload: 'chat', 'tag.team': 'blue', after: '12' });
    expect(read.data).toEqual({ after: 12, question: { workload: 'chat', tags: { team: 'blue' } } });
    const wrong = schemas.headroom.safeParse({ 'tag.Team': 'blue', colour: 'red' });
    expect(wrong.error?.issues.map((issue) => ('keys' in issue ? issue.keys : []))).toEqual([
      ['tag.Team'],
      ['colour'],
    ]);
  });

  test('numbers are plain digits', () => {
    for (const limit of ['1', '1000']) expect(schemas.paged.safeParse({ limit }).success).toBe(true);
    for (const limit of ['', '0', '1001', '0x10', '1e2', ' 1', '-1', '1.5', ['1', '2']])
      expect([limit, schemas.paged.safeParse({ limit }).success]).toEqual([limit, false]);
  });

  test('a last event id that is not ours is refused', () => {
    expect(schemas.lastEventIdOf(undefined)).toBeUndefined();
    expect(schemas.lastEventIdOf('41')).toBe(41);
    expect(() => schemas.lastEventIdOf('forty-one')).toThrow('1 fault');
  });
});
