import { AppendRefusedError, StoreUnavailableError, UnknownOutcomeError } from '../event-store';

const UNIQUE_VIOLATION = '23505';

/** Certainly nothing was stored, and it is not the batch's fault: no resources, starting up, read-only. */
const UNAVAILABLE = /^(53|57P03|25006|57P04|3D000|28|42)/;
/** The batch itself cannot be stored. */
const REFUSED = /^(22|23|54)/;

const codeOf = (error: unknown): string | undefined => {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
};

export const isConflict = (error: unknown): boolean => codeOf(error) === UNIQUE_VIOLATION;

/** What a failed append means (casebook 39). Unsure means unknown: the same bytes are appended again. */
export function appendError(error: unknown): Error {
  const code = codeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  if (code !== undefined && UNAVAILABLE.test(code))
    return new StoreUnavailableError(message, { cause: error });
  if (code !== undefined && REFUSED.test(code)) return new AppendRefusedError(message, { cause: error });
  return new UnknownOutcomeError(message, { cause: error });
}
