import { evolveBudget } from './evolve-budget';
import { evolveCharge } from './evolve-charge';
import type { AlertRaised, LedgerEvent, PriceRetired, PriceSet, SpendReserved } from './events';
import type { Journal } from './journal';
import { ended, extended, schedule } from './holds';
import { bucketKey } from './matching';
import { parseMoney } from './money';
import type { Price } from './prices';
import { hold, placeNamed, unhold } from './places';
import { attemptOf, checkKey, expirySlot, priceKey, waitsFor } from './state';
import type { EventPosition, HeldPlace, LedgerState, ReservationState } from './state';
import { keyOfWindow, toMs } from './windows';

/**
 * Applies an event to the state, in place. What is due by the event's time happens first, so that time decides
 * and not a sweeper (RULES 1). Replaying the same events always gives the same state.
 */
export function evolve(state: LedgerState, event: LedgerEvent, at: EventPosition, journal: Journal): void {
  advance(state, at.atMs, journal);
  journal.set(state, 'revision', at.revision);
  if (state.at !== at.atMs) journal.set(state, 'at', at.atMs);
  switch (event.type) {
    case 'LedgerOpened':
      journal.set(state, 'opened', true);
      return journal.set(state, 'settings', event.data.settings);
    case 'SettingsChanged':
      return journal.set(state, 'settings', event.data.settings);
    case 'BudgetDefined':
    case 'BudgetAmended':
    case 'BudgetRetired':
      return evolveBudget(state, event, at, journal);
    case 'PriceListed':
      return journal.put(state.prices, event.data.price.priceId, event.data.price);
    case 'PriceSet':
      return priceSet(state, event, at, journal);
    case 'PriceRetired':
      return override(state, event.data, undefined, at, journal);
    case 'SpendEstimated':
      return;
    case 'SpendReserved':
      return reserved(state, event, at, journal);
    case 'SpendRefused':
      return journal.put(state.checks, checkKey(event.data.requestId, event.data.attempt), {
        bodyHash: event.data.bodyHash,
        revision: at.revision,
        reservationId: undefined,
      });
    case 'UsageCharged':
    case 'ChargeCorrected':
      return evolveCharge(state, event, at, journal);
    case 'ReservationReleased':
      return ended(state, event.data.reservationId, 'released', at.revision, journal);
    case 'ReservationExpired':
      // With assume-spent the hold stays until the assumed charge, which follows in the same batch, replaces it.
      if (event.data.onExpiry === 'assume-spent') return;
      return ended(state, event.data.reservationId, 'expired-released', at.revision, journal);
    case 'ReservationExtended':
      return extended(state, event.data.reservationId, toMs(event.data.expiresAt), journal);
    case 'AlertRaised':
      return alerted(state, event, journal);
    default: {
      const unknown: never = event;
      throw new Error(`no evolution for ${JSON.stringify(unknown)}`);
    }
  }
}

/**
 * Lets time pass: holds that are given back on expiry and are due count as given back from now on, recorded or
 * not. What is assumed spent on expiry stays held until it is booked: the sum is the same.
 */
export function advance(state: LedgerState, atMs: number, journal: Journal): void {
  const through = expirySlot(atMs);
  if (through < state.releasedThrough || state.due.size === 0) return;
  for (const slot of slotsBetween(state, state.releasedThrough, through)) {
    for (const id of state.due.get(slot) ?? []) {
      const reservation = state.reservations.get(id);
      if (reservation?.status !== 'held' || reservation.onExpiry !== 'release') continue;
      if (reservation.expiresAtMs > atMs) continue;
      unhold(state, reservation.places, reservation.amount, journal);
      journal.set(reservation, 'places', []);
      journal.set(reservation, 'status', 'expired-released');
    }
  }
  if (through > state.releasedThrough) journal.set(state, 'releasedThrough', through);
}

/** The slots with expiries in a range, inclusive, whichever way is shorter to find. */
function* slotsBetween(state: LedgerState, from: number, to: number): Generator<number> {
  if (to - from < state.due.size) {
    for (let slot = from; slot <= to; slot += 1) if (state.due.has(slot)) yield slot;
    return;
  }
  for (const slot of state.due.keys()) if (slot >= from && slot <= to) yield slot;
}

function reserved(state: LedgerState, event: SpendReserved, at: EventPosition, journal: Journal): void {
  const { data } = event;
  const amount = parseMoney(data.amount);
  const places: HeldPlace[] = [];
  for (const named of data.budgets) {
    const place = placeNamed(state, named);
    const held = place && hold(state, place, amount, journal);
    if (held) places.push(held);
  }
  const reservation: ReservationState = {
    id: data.reservationId,
    revision: at.revision,
    of: attemptOf(data),
    amount,
    usage: data.usage,
    maxOutputTokens: data.maxOutputTokens,
    priceId: data.priceId,
    reservedAtMs: at.atMs,
    onExpiry: data.onExpiry,
    expiresAtMs: toMs(data.expiresAt),
    status: 'held',
    places,
    settled: false,
    endRevision: -1,
    releaseRevision: -1,
    chargeIds: [],
  };
  journal.put(state.reservations, reservation.id, reservation);
  schedule(state, reservation, journal);
  journal.put(state.checks, checkKey(data.requestId, data.attempt), {
    bodyHash: data.bodyHash,
    revision: at.revision,
    reservationId: reservation.id,
  });
  if (!state.spent) journal.set(state, 'spent', true);
}

function priceSet(state: LedgerState, event: PriceSet, at: EventPosition, journal: Journal): void {
  const { price } = event.data;
  journal.put(state.prices, price.priceId, price);
  override(state, price, price, at, journal);
  for (const id of state.unpriced) {
    const charge = state.charges.get(id);
    if (charge && waitsFor(price, charge)) journal.include(state.repriceable, id);
  }
}

function override(
  state: LedgerState,
  of: PriceRetired['data'] | Price,
  price: Price | undefined,
  at: EventPosition,
  journal: Journal,
): void {
  const key = priceKey(of.provider, of.model);
  journal.put(state.overrides, key, [...(state.overrides.get(key) ?? []), { fromMs: at.atMs, price }]);
}

function alerted(state: LedgerState, event: AlertRaised, journal: Journal): void {
  const { kind, budget: id, window, bucket: values, threshold } = event.data;
  if (id === undefined || window === undefined) return;
  const within = state.budgets.get(id)?.windows.get(keyOfWindow(window));
  if (!within) return;
  if (kind === 'too_many_buckets') return journal.set(within, 'fullAlerted', true);
  const bucket = within.buckets.get(bucketKey(values));
  if (kind === 'budget_threshold' && bucket && threshold !== undefined) {
    journal.set(bucket, 'fired', [...bucket.fired, threshold]);
  }
}
