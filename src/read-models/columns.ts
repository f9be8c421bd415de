/** A column of the rows that a statement is given: its name and SQL type. */
export type Column = readonly [name: string, type: string];

/**
 * The rows of one statement, sent as one JSON parameter. Measured for the 32 columns of attempts: 82 µs a row all
 * in all, against 154 with an array a column through `unnest`, of which the driver's array literals take 85.
 */
export class Columns {
  constructor(private readonly columns: readonly Column[]) {}

  get names(): string {
    return this.columns.map(([name]) => name).join(', ');
  }

  /** `(…) AS alias` over parameter `$3`, in an order that all writers share. */
  rowset(alias: string, orderBy: string): string {
    const typed = this.columns.map(([name, type]) => `${name} ${type}`).join(', ');
    return `(SELECT * FROM json_to_recordset($3) AS given (${typed}) ORDER BY ${orderBy}) AS ${alias}`;
  }

  /** The parameter; a missing field is NULL. */
  parameter(rows: readonly object[]): string {
    return JSON.stringify(rows, (_, value: unknown) =>
      typeof value === 'bigint' ? value.toString() : value,
    );
  }
}
