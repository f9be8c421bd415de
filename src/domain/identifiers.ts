/** Ledger ids, budget ids: lower-case slugs. */
export const SLUG = /^[a-z0-9][a-z0-9_.-]{0,63}$/;
/** Tag keys (DESIGN 4). */
export const TAG_KEY = /^[a-z][a-z0-9_.-]{0,63}$/;

/**
 * Ids that carry the revision of the event that made them: what they name is found by reading that event, without
 * an index over random ids. The nonce keeps a slipped digit, or a revision of another ledger, from naming
 * somebody else's reservation.
 */
export const reservationId = (revision: number, nonce: string): string => `rsv_${revision}_${nonce}`;
export const chargeId = (revision: number, nonce: string): string => `chg_${revision}_${nonce}`;

const CARRIES_REVISION = /^(?:rsv|chg)_(\d{1,15})_[0-9a-f]{12}$/;

/** The revision an id was minted at, or undefined where it is not of our making. */
export function revisionIn(id: string): number | undefined {
  const found = CARRIES_REVISION.exec(id);
  return found ? Number(found[1]) : undefined;
}
