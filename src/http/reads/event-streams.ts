import type { StoredEvent } from '../../event-store/event-store';

const NEWLINE = Buffer.from('\n');
const HEARTBEAT_MS = 15_000;

/** Events at most, from batches. */
export async function* atMost(
  batches: AsyncIterable<readonly StoredEvent[]>,
  limit = Infinity,
): AsyncGenerator<readonly StoredEvent[]> {
  let left = limit;
  for await (const batch of batches) {
    yield batch.slice(0, left);
    left -= batch.length;
    if (left <= 0) return;
  }
}

/** The exact stored bytes, a line each. */
export async function* ndjson(batches: AsyncIterable<readonly StoredEvent[]>): AsyncGenerator<Buffer> {
  for await (const batch of batches) yield Buffer.concat(batch.flatMap(({ bytes }) => [bytes, NEWLINE]));
}

/** One page; the envelopes are the exact stored bytes. */
export function jsonPage(events: readonly StoredEvent[], nextCursor: string | undefined): Buffer {
  const data = events.flatMap(({ bytes }, i) => (i === 0 ? [bytes] : [Buffer.from(','), bytes]));
  const end = nextCursor === undefined ? ']}' : `],"nextCursor":${JSON.stringify(nextCursor)}}`;
  return Buffer.concat([Buffer.from('{"data":['), ...data, Buffer.from(end)]);
}

/**
 * Server-sent events, and a comment where nothing happens for a while, so that proxies keep the line. Begins with one, so that
 * the caller sees the answer's head at once.
 */
export async function* serverSentEvents(
  batches: AsyncIterable<readonly StoredEvent[]>,
  heartbeatMs = HEARTBEAT_MS,
): AsyncGenerator<string> {
  const iterator = batches[Symbol.asyncIterator]();
  try {
    yield 'retry: 1000\n: following\n\n';
    let pending = iterator.next();
    for (;;) {
      const next = await withHeartbeat(pending, heartbeatMs);
      if (next === 'heartbeat') {
        yield ': heartbeat\n\n';
        continue;
      }
      if (next.done) return;
      yield next.value.map(message).join('');
      pending = iterator.next();
    }
  } finally {
    await iterator.return?.();
  }
}

/** Canonical JSON has no line breaks: one data line holds it. */
const message = ({ revision, type, bytes }: StoredEvent): string =>
  `id: ${revision}\nevent: ${type}\ndata: ${bytes.toString('utf8')}\n\n`;

async function withHeartbeat<T>(pending: Promise<T>, ms: number): Promise<T | 'heartbeat'> {
  let timer: NodeJS.Timeout | undefined;
  const beat = new Promise<'heartbeat'>((resolve) => {
    timer = setTimeout(() => {
      resolve('heartbeat');
    }, ms);
  });
  try {
    return await Promise.race([pending, beat]);
  } finally {
    clearTimeout(timer);
  }
}
