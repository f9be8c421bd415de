import { asQueryError } from '../../queries/query-errors';
import type { QueryErrorCode } from '../../queries/query-errors';
import { Problem, invalidRequest } from '../problems/problem';

/** The one table from queries' errors to statuses. */
const STATUS: Readonly<Record<QueryErrorCode, number>> = {
  ledger_not_found: 404,
  reservation_not_found: 404,
  charge_not_found: 404,
  request_not_found: 404,
  budget_not_found: 404,
  position_ahead: 400,
  invalid_cursor: 400,
  projection_behind: 503,
  history_busy: 503,
  history_timeout: 503,
  history_failed: 503,
  storage_unavailable: 503,
};
const LATER = { 'retry-after': '1' };

/** How a query's error is told; undefined for one nobody expected. */
export function queryProblem(error: unknown): Problem | undefined {
  const known = asQueryError(error);
  if (!known) return undefined;
  const { code, message, members } = known;
  if (code === 'invalid_cursor') return invalidRequest([{ path: 'cursor', message: 'is not one of ours' }]);
  const status = STATUS[code];
  return new Problem(status, code, message, members, status === 503 ? LATER : {});
}
