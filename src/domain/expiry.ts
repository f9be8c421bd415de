import type { ExpiredAnswer } from './answers';
import { attemptData } from './attempt-data';
import type { ExpireDue } from './commands';
import type { Context, Decision } from './decision';
import type { LedgerEvent, ReservationExpired, UsageCharged } from './events';
import { chargeId } from './identifiers';
import { formatMoney } from './money';
import { placesOf, toBudgetPlace } from './places';
import { repricings } from './repricing';
import { expirySlot } from './state';
import type { ChargeState, LedgerState, ReservationState } from './state';
import { toTime } from './windows';

export interface Expiry {
  readonly events: readonly LedgerEvent[];
  /** With assume-spent: the charge these events book, as it will stand. */
  readonly assumed: ChargeState | undefined;
}

/** The end of a reservation nobody reported on: the estimate is booked as spent, or given back (RULES 4). */
export function expiry(
  reservation: ReservationState,
  state: LedgerState,
  revision: number,
  context: Pick<Context, 'nonce'>,
): Expiry {
  const { of, reservedAtMs } = reservation;
  const budgets = placesOf(state, of, reservedAtMs, reservation.revision).map(toBudgetPlace);
  const expired: ReservationExpired = {
    type: 'ReservationExpired',
    data: {
      reservationId: reservation.id,
      requestId: of.requestId ?? '',
      attempt: of.attempt ?? 1,
      amount: formatMoney(reservation.amount),
      onExpiry: reservation.onExpiry,
      expiredAt: toTime(reservation.expiresAtMs),
      budgets,
    },
  };
  if (reservation.onExpiry === 'release') return { events: [expired], assumed: undefined };
  const id = chargeId(revision + 1, context.nonce);
  return { events: [expired, assumption(reservation, id, budgets)], assumed: assumedCharge(reservation, id) };
}

function assumption(
  reservation: ReservationState,
  id: string,
  budgets: UsageCharged['data']['budgets'],
): UsageCharged {
  const amount = formatMoney(reservation.amount);
  return {
    type: 'UsageCharged',
    data: {
      ...attemptData(reservation.of),
      chargeId: id,
      reservationId: reservation.id,
      assumed: true,
      cost: amount,
      quality: 'assumed',
      usage: reservation.usage,
      priceId: reservation.priceId,
      // Held in the shadow without a price: there is nothing to assume but that it was not free.
      unpriced: reservation.priceId === undefined ? true : undefined,
      released: '0',
      overrun: '0',
      reserved: amount,
      countedAt: toTime(reservation.reservedAtMs),
      budgets,
    },
  };
}

function assumedCharge(reservation: ReservationState, id: string): ChargeState {
  return {
    id,
    reservationId: reservation.id,
    usageId: undefined,
    of: reservation.of,
    reserved: reservation.amount,
    countedAtMs: reservation.reservedAtMs,
    countedRevision: reservation.revision,
    cost: reservation.amount,
    quality: 'assumed',
    usage: reservation.usage,
    servedModel: undefined,
    servedTier: undefined,
    providerRequestId: undefined,
    unpriced: reservation.priceId === undefined,
    bodies: [],
    corrections: [],
  };
}

/** Reservations past their expiry whose end is not in the log yet. */
function* dueReservations(state: LedgerState, nowMs: number): Generator<ReservationState> {
  const through = expirySlot(nowMs);
  for (const [slot, ids] of state.due) {
    if (slot > through) continue;
    for (const id of ids) {
      const reservation = state.reservations.get(id);
      if (reservation && reservation.expiresAtMs <= nowMs) yield reservation;
    }
  }
}

/** How much there is to book: due expiries, and charges that can be priced at last. */
export function dueBefore(state: LedgerState, nowMs: number): number {
  let count = state.repriceable.size;
  for (const reservation of dueReservations(state, nowMs)) count += reservation.settled ? 0 : 1;
  return count;
}

/** Books what is due, at most `limit` of it. */
export function decideExpiry(command: ExpireDue, state: LedgerState, context: Context): Decision {
  const events: LedgerEvent[] = [];
  let count = 0;
  for (const reservation of dueReservations(state, context.nowMs)) {
    if (count === command.limit) break;
    events.push(...expiry(reservation, state, state.revision + 1 + events.length, context).events);
    count += 1;
  }
  const priced = repricings(
    state,
    [...state.repriceable].slice(0, command.limit - count),
    undefined,
    context,
  );
  events.push(...priced);
  count += priced.length;
  const answer: ExpiredAnswer = {
    kind: 'expired',
    count,
    more: dueBefore(state, context.nowMs) > count,
    position: state.revision + events.length,
  };
  return events.length === 0 ? { kind: 'unchanged', answer } : { kind: 'accepted', events, answer };
}
