import { AppendRefusedError } from './event-store';
import type { SealedEvent } from './event-store';

/**
 * Why no adapter may store a batch, if so: it is empty, or its events do not say the revisions they would get. The
 * revision is sealed into the bytes; under another one they would fail every audit.
 */
export function batchFault(
  expectedRevision: number,
  events: readonly SealedEvent[],
): AppendRefusedError | undefined {
  if (events.length === 0) return new AppendRefusedError('a batch without events');
  const astray = events.find(({ revision }, i) => revision !== expectedRevision + 1 + i);
  if (!astray) return undefined;
  return new AppendRefusedError(
    `an event of revision ${astray.revision} in a batch after ${expectedRevision}`,
  );
}
