import type { ChargeCorrected, UsageCharged } from './events';
import { ended } from './holds';
import type { Journal } from './journal';
import { ZERO, parseMoney } from './money';
import { charge, placeNamed } from './places';
import { attemptOf } from './state';
import type { AcceptedBody, ChargeState, EventPosition, LedgerState } from './state';
import { toMs } from './windows';

/** Books a charge or its correction in the places the event names. */
export function evolveCharge(
  state: LedgerState,
  event: UsageCharged | ChargeCorrected,
  at: EventPosition,
  journal: Journal,
): void {
  if (event.type === 'UsageCharged') charged(state, event, at, journal);
  else corrected(state, event, at, journal);
}

const accepted = (hash: string | undefined, revision: number): AcceptedBody[] =>
  hash === undefined ? [] : [{ hash, revision }];

function charged(state: LedgerState, event: UsageCharged, at: EventPosition, journal: Journal): void {
  const { data } = event;
  const reservation =
    data.reservationId === undefined ? undefined : state.reservations.get(data.reservationId);
  if (reservation) {
    if (!data.duplicateSend) ended(state, reservation.id, data.quality, at.revision, journal);
    journal.set(reservation, 'chargeIds', [...reservation.chargeIds, data.chargeId]);
  }
  const cost = parseMoney(data.cost);
  const booked: ChargeState = {
    id: data.chargeId,
    reservationId: data.reservationId,
    usageId: data.usageId,
    of: attemptOf(data),
    reserved: data.reserved === undefined || data.duplicateSend ? ZERO : parseMoney(data.reserved),
    countedAtMs: toMs(data.countedAt),
    countedRevision: reservation?.revision ?? at.revision,
    cost,
    quality: data.quality,
    usage: data.usage,
    servedModel: data.servedModel,
    servedTier: data.servedTier,
    providerRequestId: data.providerRequestId,
    unpriced: data.unpriced === true,
    bodies: accepted(data.bodyHash, at.revision),
    corrections: [],
  };
  journal.put(state.charges, booked.id, booked);
  if (booked.usageId !== undefined) journal.put(state.usages, booked.usageId, booked.id);
  if (booked.unpriced) journal.include(state.unpriced, booked.id);
  count(state, event, cost, journal);
  if (!state.spent) journal.set(state, 'spent', true);
}

function corrected(state: LedgerState, event: ChargeCorrected, at: EventPosition, journal: Journal): void {
  const { data } = event;
  const cost = parseMoney(data.cost);
  count(state, event, cost - parseMoney(data.previousCost), journal);
  const known = state.charges.get(data.chargeId);
  if (!known) return;
  journal.set(known, 'cost', cost);
  journal.set(known, 'quality', data.quality);
  journal.set(known, 'usage', data.usage);
  journal.set(known, 'servedModel', data.servedModel);
  journal.set(known, 'servedTier', data.servedTier);
  journal.set(known, 'providerRequestId', data.providerRequestId);
  journal.set(known, 'unpriced', data.unpriced === true);
  if (data.bodyHash !== undefined && data.correctionId !== undefined) {
    const correction = { id: data.correctionId, hash: data.bodyHash, revision: at.revision };
    journal.set(known, 'corrections', [...known.corrections, correction]);
  } else if (data.bodyHash !== undefined) {
    journal.set(known, 'bodies', [...known.bodies, ...accepted(data.bodyHash, at.revision)]);
  }
  journal.exclude(state.repriceable, known.id);
  if (data.unpriced) journal.include(state.unpriced, known.id);
  else journal.exclude(state.unpriced, known.id);
  restate(state, event, known, at, journal);
}

/** What a correction makes of the reservation the charge settles. */
function restate(
  state: LedgerState,
  event: ChargeCorrected,
  known: ChargeState,
  at: EventPosition,
  journal: Journal,
): void {
  const reservation =
    known.reservationId === undefined ? undefined : state.reservations.get(known.reservationId);
  if (!reservation || reservation.chargeIds[0] !== known.id) return;
  if (event.data.cause === 'usage') journal.set(reservation, 'status', event.data.quality);
  if (event.data.cause === 'release') {
    journal.set(reservation, 'status', 'released');
    journal.set(reservation, 'endRevision', at.revision);
    journal.set(reservation, 'releaseRevision', at.revision);
  }
}

function count(
  state: LedgerState,
  event: UsageCharged | ChargeCorrected,
  amount: bigint,
  journal: Journal,
): void {
  for (const named of event.data.budgets) {
    const place = placeNamed(state, named);
    if (place) charge(state, place, amount, journal);
  }
}
