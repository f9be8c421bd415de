import type { SealedEvent } from '../event-store';

/**
 * One statement appends a batch or nothing of it. The rows are cut from one bytea by offsets: measured, that takes
 * half the time of an array of bytea. A row goes in only where its predecessor stands, so no hole can come about;
 * two appends at one revision meet in the primary key, and the second gets a unique violation.
 */
const APPEND = `
  INSERT INTO events (ledger, revision, at, id, type, body)
  SELECT $1, $2::bigint + row.n, to_timestamp(row.at / 1000.0), row.id, row.type, substring($3::bytea FROM row.start FOR row.size)
  FROM unnest($4::int[], $5::int[], $6::float8[], $7::uuid[], $8::text[]) WITH ORDINALITY AS row(start, size, at, id, type, n)
  WHERE $2::bigint = -1 OR EXISTS (SELECT FROM events WHERE ledger = $1 AND revision = $2::bigint)`;

const CLOCK = `SELECT count(*)::int AS stored, extract(epoch FROM clock_timestamp())::float8 * 1000 AS now FROM appended`;

const TEXT = `WITH appended AS (${APPEND} RETURNING 1) ${CLOCK}`;

export interface AppendRow {
  readonly stored: number;
  /** ms since epoch. */
  readonly now: number;
}

/** The statement that appends these events after a revision. */
export function appendStatement(ledger: string, expectedRevision: number, events: readonly SealedEvent[]) {
  const starts: number[] = [];
  const sizes: number[] = [];
  let start = 1;
  for (const { bytes } of events) {
    starts.push(start);
    sizes.push(bytes.length);
    start += bytes.length;
  }
  return {
    name: 'append-events',
    text: TEXT,
    values: [
      ledger,
      expectedRevision,
      Buffer.concat(events.map(({ bytes }) => bytes)),
      starts,
      sizes,
      events.map(({ at }) => at),
      events.map(({ id }) => id),
      events.map(({ type }) => type),
    ],
  };
}
