/** Why a query cannot be answered; `http/` tells each by its status. */
export class QueryError extends Error {
  override readonly name = 'QueryError';
  constructor(
    readonly code: 'ledger_not_found' | 'not_found' | 'position_ahead' | 'projection_behind',
    message: string,
  ) {
    super(message);
  }
}
