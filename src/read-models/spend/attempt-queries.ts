import type pg from 'pg';
import { revisionIn } from '../../domain/identifiers';
import { activeVersion } from '../active-version';
import { decodeRevision, limitOf, pageOf } from '../paging';
import type { Page, PageRequest } from '../paging';
import type { AttemptState } from './attempt-row';
import { VIEW_COLUMNS, viewOf } from './attempt-view';
import type { AttemptView, StoredAttempt } from './attempt-view';

/** What one request did is shown whole: more attempts than this nobody makes. */
const MOST_ATTEMPTS = 10_000;

const OF_LEDGER = `ledger = $1 AND version = ${activeVersion('spend')}`;

/** Attempts, reservations and charges, each found by an index. */
export class AttemptQueries {
  constructor(private readonly pool: Pick<pg.Pool, 'query'>) {}

  /** Everything a request did, oldest first; empty where it is not known. */
  async request(ledger: string, requestId: string): Promise<AttemptView[]> {
    return this.select(`request_id = $2 ORDER BY revision LIMIT $3`, [ledger, requestId, MOST_ATTEMPTS]);
  }

  /** A reservation, with its charge; undefined where it is not known. */
  async reservation(ledger: string, reservationId: string): Promise<AttemptView | undefined> {
    const revision = revisionIn(reservationId);
    if (revision === undefined) return undefined;
    const found = await this.select('revision = $2 AND reservation_id = $3', [
      ledger,
      revision,
      reservationId,
    ]);
    return found.find(({ state }) => state !== 'charged');
  }

  /** The attempt that a charge belongs to; undefined where it is not known. */
  async charge(ledger: string, chargeId: string): Promise<AttemptView | undefined> {
    const revision = revisionIn(chargeId);
    if (revision === undefined) return undefined;
    const [found] = await this.select('charge_revision = $2 AND charge_id = $3', [
      ledger,
      revision,
      chargeId,
    ]);
    return found;
  }

  /** Reservations, newest first; without a state those of every state. Throws InvalidCursorError. */
  async reservations(
    ledger: string,
    state: AttemptState | undefined,
    page: PageRequest,
  ): Promise<Page<AttemptView>> {
    const before = decodeRevision(page);
    const limit = limitOf(page);
    const { rows } = await this.pool.query<StoredAttempt>(
      `SELECT ${VIEW_COLUMNS} FROM attempts WHERE ${OF_LEDGER} AND ($3::text IS NULL OR state = $3)
          AND reservation_id IS NOT NULL AND state NOT IN ('charged', 'refused', 'asked')
          AND ($2::bigint IS NULL OR revision < $2) ORDER BY revision DESC LIMIT $4`,
      [ledger, before ?? null, state ?? null, limit + 1],
    );
    return pageOf(rows, limit, ({ revision }) => [revision], viewOf);
  }

  private async select(where: string, values: readonly unknown[]): Promise<AttemptView[]> {
    const text = `SELECT ${VIEW_COLUMNS} FROM attempts WHERE ${OF_LEDGER} AND ${where}`;
    const { rows } = await this.pool.query<StoredAttempt>(text, [...values]);
    return rows.map(viewOf);
  }
}
