import { acceptedWith } from './accepted';
import type { CorrectCharge, ExtendReservation, ReleaseReservation } from './commands';
import type { Context, Decision } from './decision';
import { thresholdAlerts } from './alerts';
import type { ChargeCorrected, LedgerEvent, ReservationExtended, ReservationReleased } from './events';
import { expiry } from './expiry';
import { formatMoney, parseMoney, ZERO } from './money';
import { placesOf, toBudgetPlace } from './places';
import type { ReservationStateName } from './rejections';
import { correctionOf } from './repricing';
import type { ChargeState, LedgerState, ReservationState } from './state';
import { toTime } from './windows';

const notFound = (id: string): Decision => ({
  kind: 'rejected',
  rejection: { code: 'reservation_not_found', detail: `no reservation ${id}` },
});

const hasEnded = (id: string, name: ReservationStateName, action: string): Decision => ({
  kind: 'rejected',
  rejection: {
    code: 'reservation_ended',
    detail: `reservation ${id} is ${name}: it cannot be ${action}`,
    state: name,
  },
});

/** Gives back what was never sent (RULES 4). */
export function decideRelease(command: ReleaseReservation, state: LedgerState, context: Context): Decision {
  const reservation = state.reservations.get(command.reservationId);
  if (!reservation) return notFound(command.reservationId);
  // A release that was accepted before is told the same again, whatever was charged since.
  if (reservation.releaseRevision >= 0) return { kind: 'replay', revision: reservation.releaseRevision };
  const due = !reservation.settled && reservation.expiresAtMs <= context.nowMs;
  if (due) return releaseDue(reservation, state, context);
  switch (reservation.status) {
    case 'held':
      return acceptedWith([releaseOf(reservation, state)], 0, state);
    case 'assumed': {
      const charge = state.charges.get(reservation.chargeIds[0] ?? '');
      return charge ? takeBack(charge, [], state) : notFound(command.reservationId);
    }
    case 'released':
    case 'expired-released':
      return { kind: 'replay', revision: reservation.endRevision };
    case 'unconfirmed':
    case 'confirmed':
      return hasEnded(reservation.id, reservation.status, 'released');
  }
}

function releaseOf(reservation: ReservationState, state: LedgerState): ReservationReleased {
  const { of, reservedAtMs } = reservation;
  return {
    type: 'ReservationReleased',
    data: {
      reservationId: reservation.id,
      requestId: of.requestId ?? '',
      attempt: of.attempt ?? 1,
      amount: formatMoney(reservation.amount),
      budgets: placesOf(state, of, reservedAtMs, reservation.revision).map(toBudgetPlace),
    },
  };
}

/** What is due happens first: an assumption is booked and taken back, a due release is only recorded. */
function releaseDue(reservation: ReservationState, state: LedgerState, context: Context): Decision {
  const { events, assumed } = expiry(reservation, state, state.revision + 1, context);
  return assumed ? takeBack(assumed, events, state) : acceptedWith(events, 0, state);
}

/** It was assumed spent and never was: the charge becomes 0. */
function takeBack(charge: ChargeState, before: readonly LedgerEvent[], state: LedgerState): Decision {
  const event: ChargeCorrected = {
    type: 'ChargeCorrected',
    data: correctionOf(state, charge, ZERO, 'release'),
  };
  return acceptedWith([...before, event], before.length, state);
}

/** More time: the later of the old expiry and now + ttl. */
export function decideExtension(command: ExtendReservation, state: LedgerState, context: Context): Decision {
  const reservation = state.reservations.get(command.reservationId);
  if (!reservation) return notFound(command.reservationId);
  const { id, of } = reservation;
  if (reservation.settled || reservation.expiresAtMs <= context.nowMs) {
    const due = reservation.status === 'held';
    const name =
      due && reservation.onExpiry === 'assume-spent'
        ? 'assumed'
        : due
          ? 'expired-released'
          : reservation.status;
    return hasEnded(id, name, 'extended');
  }
  const expiresAtMs = Math.max(reservation.expiresAtMs, context.nowMs + command.ttlSeconds * 1000);
  const expiresAt = toTime(expiresAtMs);
  const answer = { kind: 'reservation-extended' as const, reservationId: id, expiresAt };
  if (expiresAtMs === reservation.expiresAtMs) {
    return { kind: 'unchanged', answer: { ...answer, position: state.revision } };
  }
  const event: ReservationExtended = {
    type: 'ReservationExtended',
    data: { reservationId: id, requestId: of.requestId ?? '', attempt: of.attempt ?? 1, expiresAt },
  };
  return { kind: 'accepted', events: [event], answer: { ...answer, position: state.revision + 1 } };
}

/** An operator's figure for a charge: a new total. */
export function decideCorrection(command: CorrectCharge, state: LedgerState, context: Context): Decision {
  const charge = state.charges.get(command.chargeId);
  if (!charge) {
    return {
      kind: 'rejected',
      rejection: { code: 'charge_not_found', detail: `no charge ${command.chargeId}` },
    };
  }
  const known = charge.corrections.find((correction) => correction.id === command.correctionId);
  if (known && known.hash === command.bodyHash) return { kind: 'replay', revision: known.revision };
  if (known) {
    const detail = `correction ${command.correctionId} of this charge was made before with another body`;
    return { kind: 'rejected', rejection: { code: 'idempotency_conflict', detail } };
  }
  const amount = parseMoney(command.amount);
  const event: ChargeCorrected = {
    type: 'ChargeCorrected',
    data: {
      ...correctionOf(state, charge, amount, 'operator'),
      bodyHash: command.bodyHash,
      correctionId: command.correctionId,
      reason: command.reason,
    },
  };
  const places = placesOf(state, charge.of, charge.countedAtMs, charge.countedRevision);
  return acceptedWith([event, ...thresholdAlerts(places, amount - charge.cost, context.nowMs)], 0, state);
}
