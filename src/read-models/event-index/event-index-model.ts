import type { Recorded } from '../../domain/events';
import { Columns } from '../columns';
import type { Batch, Memory, ReadModel, Sql } from '../read-model';

/** Revisions a segment covers: about what one page of the log reads in a few milliseconds. */
export const SEGMENT_SIZE = 1_000;

const COLUMNS = new Columns([
  ['segment', 'bigint'],
  ['types', 'text[]'],
  ['first_at', 'timestamptz'],
  ['last_at', 'timestamptz'],
]);
const UPSERT = `INSERT INTO event_segments AS s (ledger, version, ${COLUMNS.names})
  SELECT $1, $2, row.* FROM ${COLUMNS.rowset('row', 'segment')}
  ON CONFLICT (ledger, version, segment) DO UPDATE SET last_at = excluded.last_at,
    types = ARRAY(SELECT DISTINCT t FROM unnest(s.types || excluded.types) AS t ORDER BY t)`;

interface Segment {
  readonly types: Set<string>;
  readonly firstAt: string;
  lastAt: string;
}

/**
 * Which event types occur where. An entry an event would double the write load of the log; this is one small row a thousand
 * revisions, which for a rare type leaves a few pages of the log to read and for a frequent one costs nothing extra.
 */
export const eventIndexModel: ReadModel = {
  name: 'event-index',
  shape: 1,
  tables: ['event_segments'],
  apply: async (sql: Sql, batch: Batch): Promise<Memory> => {
    const segments = segmentsOf(batch.events);
    const rows = [...segments].map(([segment, { types, firstAt, lastAt }]) => ({
      segment,
      types: [...types].sort(),
      first_at: firstAt,
      last_at: lastAt,
    }));
    const values = [batch.ledger, batch.version, COLUMNS.parameter(rows)];
    await sql.query({ name: 'event-segments', text: UPSERT, values });
    return batch.memory;
  },
};

function segmentsOf(events: readonly Recorded[]): Map<number, Segment> {
  const segments = new Map<number, Segment>();
  for (const { revision, type, at } of events) {
    const number = Math.floor(revision / SEGMENT_SIZE);
    const segment = segments.get(number);
    if (segment) {
      segment.types.add(type);
      segment.lastAt = at;
    } else segments.set(number, { types: new Set([type]), firstAt: at, lastAt: at });
  }
  return segments;
}
