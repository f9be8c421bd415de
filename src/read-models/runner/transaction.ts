import type { Sql } from '../read-model';

/** The connection is gone or useless: nothing to do with what was asked of it. */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';
}

/**
 * Runs `work` in a transaction; it commits where `work` returns true, else nothing happened. An error of `work` is
 * thrown as it is where the connection still answers, else as ConnectionLostError. After a failed COMMIT nobody knows
 * whether it happened: the caller reads the checkpoint again.
 */
export async function transaction(sql: Sql, work: () => Promise<boolean>): Promise<boolean> {
  await onConnection(sql, 'BEGIN');
  let commit: boolean;
  try {
    commit = await work();
  } catch (error) {
    await onConnection(sql, 'ROLLBACK', error);
    throw error;
  }
  await onConnection(sql, commit ? 'COMMIT' : 'ROLLBACK');
  return commit;
}

async function onConnection(sql: Sql, statement: string, cause?: unknown): Promise<void> {
  try {
    await sql.query(statement);
  } catch (error) {
    throw new ConnectionLostError(`${statement} failed`, { cause: cause ?? error });
  }
}
