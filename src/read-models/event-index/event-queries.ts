import type pg from 'pg';
import type { EventType } from '../../domain/events';
import { activeVersion } from '../active-version';
import { SEGMENT_SIZE } from './event-index-model';

export interface EventFilter {
  readonly type?: EventType;
  readonly requestId?: string;
  readonly conversation?: string;
  /** ms since epoch, inclusive. */
  readonly fromMs?: number;
  /** ms since epoch, exclusive. */
  readonly toMs?: number;
}

/** Revisions `[from, to]` of the log, both inclusive. */
export interface RevisionRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Where matching events can be. `exact` revisions all belong to the request or conversation; the reader still
 * compares type and time. Ranges hold events of the type and stretch of time among others.
 */
export type EventPlaces =
  | { readonly kind: 'exact'; readonly revisions: readonly number[]; readonly more: boolean }
  | { readonly kind: 'ranges'; readonly ranges: readonly RevisionRange[]; readonly more: boolean };

/** Answers filters on events from indexes: rows of attempts know their revisions, segments know their types. */
export class EventQueries {
  constructor(private readonly pool: Pick<pg.Pool, 'query'>) {}

  /** Places after a revision, ascending, at most `limit` of them; `more` where there are others behind. */
  async places(
    ledger: string,
    filter: EventFilter,
    afterRevision: number,
    limit: number,
  ): Promise<EventPlaces> {
    if (filter.requestId !== undefined || filter.conversation !== undefined) {
      const revisions = await this.revisions(ledger, filter, afterRevision, limit + 1);
      return { kind: 'exact', revisions: revisions.slice(0, limit), more: revisions.length > limit };
    }
    const { rows } = await this.pool.query<{ segment: string }>(
      `SELECT segment FROM event_segments
        WHERE ledger = $1 AND version = ${activeVersion('event-index')} AND segment >= $2
          AND ($3::text IS NULL OR types @> ARRAY[$3::text])
          AND ($4::timestamptz IS NULL OR last_at >= $4) AND ($5::timestamptz IS NULL OR first_at < $5)
        ORDER BY segment LIMIT $6`,
      [
        ledger,
        Math.floor((afterRevision + 1) / SEGMENT_SIZE),
        filter.type ?? null,
        timeOf(filter.fromMs),
        timeOf(filter.toMs),
        limit + 1,
      ],
    );
    const ranges = rows.slice(0, limit).map(({ segment }) => {
      const from = Number(segment) * SEGMENT_SIZE;
      return { from: Math.max(from, afterRevision + 1), to: from + SEGMENT_SIZE - 1 };
    });
    return { kind: 'ranges', ranges, more: rows.length > limit };
  }

  private async revisions(
    ledger: string,
    { requestId, conversation }: EventFilter,
    afterRevision: number,
    limit: number,
  ): Promise<number[]> {
    const { rows } = await this.pool.query<{ revision: string }>(
      `SELECT DISTINCT r AS revision FROM attempts a, unnest(a.revisions) AS r
        WHERE a.ledger = $1 AND a.version = ${activeVersion('spend')} AND r > $4
          AND ($2::text IS NULL OR a.request_id = $2) AND ($3::text IS NULL OR a.conversation = $3)
        ORDER BY r LIMIT $5`,
      [ledger, requestId ?? null, conversation ?? null, afterRevision, limit],
    );
    return rows.map(({ revision }) => Number(revision));
  }
}

const timeOf = (ms: number | undefined): string | null =>
  ms === undefined ? null : new Date(ms).toISOString();
