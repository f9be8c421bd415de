import type { OpeningBalance } from './budget';
import type { BudgetAmended, BudgetDefined, BudgetRetired } from './events';
import type { Journal } from './journal';
import { bucketKey, matches } from './matching';
import { money, parseMoney } from './money';
import { emptyBucket, heldPlace, placeIn, within } from './places';
import type {
  BudgetState,
  EventPosition,
  HeldPlace,
  LedgerState,
  ReservationState,
  WindowState,
} from './state';
import { budgetState } from './state';
import { keyOfWindow, toMs } from './windows';

/** Defines, amends or retires a budget, and keeps the index of what it matches. */
export function evolveBudget(
  state: LedgerState,
  event: BudgetDefined | BudgetAmended | BudgetRetired,
  at: EventPosition,
  journal: Journal,
): void {
  switch (event.type) {
    case 'BudgetDefined': {
      const countedFrom = event.data.countFrom === 'now' ? at.revision : -1;
      const budget = budgetState(event.data.budget, event.data.generation, countedFrom, 0, new Map());
      replace(state, budget, journal);
      fill(budget, event.data.opening, journal);
      if (event.data.countFrom === 'window') adoptHolds(state, budget, at.atMs, journal);
      return;
    }
    case 'BudgetAmended':
      return amended(state, event, at, journal);
    case 'BudgetRetired': {
      const old = state.budgets.get(event.data.id);
      if (old) replace(state, { ...old, retired: true, windows: new Map() }, journal);
    }
  }
}

function amended(state: LedgerState, event: BudgetAmended, at: EventPosition, journal: Journal): void {
  const old = state.budgets.get(event.data.budget.id);
  if (!old) return;
  const limitChanged = old.limit !== parseMoney(event.data.budget.limit);
  const { opening } = event.data;
  const windows = opening ? new Map<number, WindowState>() : old.windows;
  const armed = limitChanged ? old.armed + 1 : old.armed;
  const budget = budgetState(event.data.budget, old.generation, old.countedFrom, armed, windows);
  replace(state, budget, journal);
  if (opening) {
    fill(budget, opening, journal);
    for (const reservation of heldReservations(state)) dropPlace(reservation, budget.id, journal);
    adoptHolds(state, budget, at.atMs, journal);
  }
  for (const [key, window] of budget.windows) {
    if (limitChanged) for (const bucket of window.buckets.values()) journal.set(bucket, 'fired', []);
    carryOver(budget, limitChanged ? undefined : old.windows.get(key), key, journal);
  }
}

/** After an amendment: alerts already raised stay raised, and a fixed window takes its new end. */
function carryOver(
  budget: BudgetState,
  before: WindowState | undefined,
  key: number,
  journal: Journal,
): void {
  const window = budget.windows.get(key);
  if (!window) return;
  if (before && before !== window) {
    for (const [bucket, old] of before.buckets) {
      const now = window.buckets.get(bucket);
      if (now) journal.set(now, 'fired', old.fired);
    }
  }
  const rule = budget.definition.window;
  if (typeof rule === 'object') {
    const span = { kind: 'fixed' as const, fromMs: toMs(rule.from), toMs: toMs(rule.to) };
    journal.put(budget.windows, key, { ...window, span });
  }
}

function replace(state: LedgerState, budget: BudgetState, journal: Journal): void {
  const old = state.budgets.get(budget.id);
  const { index } = state;
  if (old && !old.retired) index.remove(old.definition.match, old.id);
  if (!budget.retired) index.add(budget.definition.match, budget);
  journal.onUndo(() => {
    if (!budget.retired) index.remove(budget.definition.match, budget.id);
    if (old && !old.retired) index.add(old.definition.match, old);
  });
  journal.put(state.budgets, budget.id, budget);
}

function fill(budget: BudgetState, opening: readonly OpeningBalance[], journal: Journal): void {
  for (const balance of opening) {
    const key = keyOfWindow(balance.window);
    let window = budget.windows.get(key);
    if (!window) {
      const { kind, from, to } = balance.window;
      const span = {
        kind,
        fromMs: from === undefined ? undefined : toMs(from),
        toMs: to === undefined ? undefined : toMs(to),
      };
      window = { span, buckets: new Map(), holds: 0, fullAlerted: false };
      journal.put(budget.windows, key, window);
    }
    const bucket = emptyBucket(budget, balance.bucket);
    bucket.charged = parseMoney(balance.charged);
    bucket.held = parseMoney(balance.held);
    for (const part of balance.setAsides ?? []) {
      const counter = bucket.setAsides[part.index];
      if (!counter) continue;
      counter.charged = money(counter.charged + parseMoney(part.charged));
      counter.held = money(counter.held + parseMoney(part.held));
    }
    journal.put(window.buckets, bucketKey(balance.bucket), bucket);
  }
}

/** Holds that stood when the budget was defined are in its opening: their end must find them there. */
function adoptHolds(state: LedgerState, budget: BudgetState, atMs: number, journal: Journal): void {
  for (const reservation of heldReservations(state)) {
    const place = adopted(state, budget, reservation, atMs);
    if (!place) continue;
    const window = budget.windows.get(place.window);
    if (!window?.buckets.has(place.bucket)) continue;
    journal.set(window, 'holds', window.holds + 1);
    journal.set(reservation, 'places', [...reservation.places, place]);
  }
}

function adopted(
  state: LedgerState,
  budget: BudgetState,
  reservation: ReservationState,
  atMs: number,
): HeldPlace | undefined {
  if (reservation.status !== 'held' || !matches(budget.definition.match, reservation.of)) return undefined;
  if (reservation.revision < budget.countedFrom) return undefined;
  const place = placeIn(budget, reservation.of, state.settings.timezone, reservation.reservedAtMs);
  const over = place.span.toMs !== undefined && place.span.toMs <= atMs && place.span.kind !== 'fixed';
  return over || !within(place.span, reservation.reservedAtMs) ? undefined : heldPlace(place);
}

function dropPlace(reservation: ReservationState, budget: string, journal: Journal): void {
  if (!reservation.places.some((place) => place.budget === budget)) return;
  journal.set(
    reservation,
    'places',
    reservation.places.filter((place) => place.budget !== budget),
  );
}

function* heldReservations(state: LedgerState): Generator<ReservationState> {
  for (const ids of state.due.values()) {
    for (const id of ids) {
      const reservation = state.reservations.get(id);
      if (reservation) yield reservation;
    }
  }
}
