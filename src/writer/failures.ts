import type { Batch } from './batch';
import type { Pending } from './pending';
import { LogUnavailableError, OverloadedError } from './submission';

const SECONDS_TO_RETRY = 1;

/** Certainly nothing was stored, and nothing will be. */
export const unavailable = (message: string): LogUnavailableError =>
  new LogUnavailableError('none', SECONDS_TO_RETRY, message);

export const tooLate = (): LogUnavailableError => unavailable('the log did not take it in time');
export const stopping = (): LogUnavailableError => unavailable('the service is stopping');
export const overloaded = (message: string): OverloadedError =>
  new OverloadedError(SECONDS_TO_RETRY, message);

/** The caller of a command that was sent waits no longer, but the batch may yet be stored. */
export function abandon(pending: Pending, batch: Batch): void {
  const records = pending.decision?.kind === 'accepted' && batch.events.length > 0;
  if (!records) {
    pending.fail(tooLate());
    return;
  }
  const message = 'the log does not say whether this was stored';
  pending.fail(new LogUnavailableError('unknown', SECONDS_TO_RETRY, message));
}
