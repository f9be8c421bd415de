import { InvalidCursorError } from '../read-models/paging';

/** Why a query has no answer. HTTP maps each code to a status in one table (`http/reads/query-problems.ts`). */
export type QueryErrorCode =
  | 'ledger_not_found'
  | 'position_ahead'
  | 'projection_behind'
  | 'invalid_cursor'
  | 'reservation_not_found'
  | 'charge_not_found'
  | 'request_not_found'
  | 'budget_not_found'
  | 'history_busy'
  | 'history_timeout'
  | 'history_failed'
  | 'storage_unavailable';

export class QueryError extends Error {
  override readonly name = 'QueryError';
  constructor(
    readonly code: QueryErrorCode,
    message: string,
    /** What else the answer says: numbers and names, never a caller's free text. */
    readonly members: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

/** SQLSTATE classes of a server that is away, full or stopping, and Node's codes of a lost connection. */
const AWAY = /^(08|53|57P|57014|ECONN|EPIPE|ENOTFOUND|ETIMEDOUT|EAI_AGAIN|ENOENT)/;
const AWAY_WORDS = /timeout exceeded when trying to connect|Connection terminated|Query read timeout/i;

/** What a thrown error means to whoever asked; undefined for one nobody expected. */
export function asQueryError(error: unknown): QueryError | undefined {
  if (error instanceof QueryError) return error;
  if (error instanceof InvalidCursorError)
    return new QueryError('invalid_cursor', 'the cursor is not one of ours');
  return isStorageAway(error)
    ? new QueryError('storage_unavailable', 'the database does not answer now')
    : undefined;
}

/** Whether it only says that the database cannot be asked now. */
function isStorageAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  return (typeof code === 'string' && AWAY.test(code)) || AWAY_WORDS.test(error.message);
}
