import type { Journal } from './journal';
import { unhold } from './places';
import { expirySlot } from './state';
import type { LedgerState, ReservationState } from './state';

/** Notes when a hold expires. */
export function schedule(state: LedgerState, reservation: ReservationState, journal: Journal): void {
  const slot = expirySlot(reservation.expiresAtMs);
  let ids = state.due.get(slot);
  if (!ids) {
    ids = new Set();
    journal.put(state.due, slot, ids);
  }
  journal.include(ids, reservation.id);
  // An expiry before the slots already looked at must still be seen.
  if (slot < state.releasedThrough) journal.set(state, 'releasedThrough', slot);
}

function unschedule(state: LedgerState, reservation: ReservationState, journal: Journal): void {
  const slot = expirySlot(reservation.expiresAtMs);
  const ids = state.due.get(slot);
  if (!ids) return;
  journal.exclude(ids, reservation.id);
  if (ids.size === 0) journal.remove(state.due, slot);
}

/** A hold that ends without a charge, or whose charge takes its place. */
export function ended(
  state: LedgerState,
  id: string,
  status: ReservationState['status'],
  revision: number,
  journal: Journal,
): void {
  const reservation = state.reservations.get(id);
  if (!reservation) return;
  if (!reservation.settled) {
    unschedule(state, reservation, journal);
    unhold(state, reservation.places, reservation.amount, journal);
    journal.set(reservation, 'places', []);
    journal.set(reservation, 'settled', true);
  }
  journal.set(reservation, 'status', status);
  journal.set(reservation, 'endRevision', revision);
  if (status === 'released') journal.set(reservation, 'releaseRevision', revision);
}

/** Moves a hold's expiry. */
export function extended(state: LedgerState, id: string, expiresAtMs: number, journal: Journal): void {
  const reservation = state.reservations.get(id);
  if (!reservation || reservation.settled) return;
  unschedule(state, reservation, journal);
  journal.set(reservation, 'expiresAtMs', expiresAtMs);
  schedule(state, reservation, journal);
}
