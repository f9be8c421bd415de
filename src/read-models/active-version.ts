/**
 * SQL for the version of a model's rows that is served now. It stands inside of each query, so that a swap made by
 * another process is seen by the next statement. `ledger` is an SQL expression.
 */
export const activeVersion = (model: string, ledger = '$1'): string =>
  `(SELECT version FROM read_model_checkpoints WHERE ledger = ${ledger} AND model = '${model}' AND role = 'active')`;
