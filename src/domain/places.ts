import type { Bucket, BudgetPlace } from './budget';
import type { Journal } from './journal';
import { bucketKey, bucketOf, setAsideOf } from './matching';
import { ZERO, money } from './money';
import type { Money } from './money';
import type { AttemptRecord, BucketState, BudgetState, HeldPlace, LedgerState, WindowState } from './state';
import { keyOfWindow, recurs, toMs, toWindow, windowAt, windowKey } from './windows';
import type { TimeSpan } from './windows';

/** Where an attempt counts in one budget at a moment. */
export interface Place {
  readonly budget: BudgetState;
  readonly span: TimeSpan;
  readonly values: Bucket | undefined;
  readonly key: string;
  /** −1: in none. */
  readonly setAside: number;
}

/** The place of an attempt in a budget that matches it, at a moment. */
export function placeIn(budget: BudgetState, of: AttemptRecord, timezone: string, atMs: number): Place {
  const values = bucketOf(budget.definition.each, of);
  return {
    budget,
    span: windowAt(budget.definition.window, timezone, atMs),
    values,
    key: bucketKey(values),
    setAside: budget.setAsides.length === 0 ? -1 : setAsideOf(budget.setAsides, of),
  };
}

/** Whether a moment lies in the window. */
export const within = (span: TimeSpan, atMs: number): boolean =>
  (span.fromMs === undefined || span.fromMs <= atMs) && (span.toMs === undefined || atMs < span.toMs);

/**
 * Where spending counts that was judged at a moment and revision: every active budget that matches it and whose
 * window contains the moment (RULES 4), but not those told to count from a later "now".
 */
export function placesOf(state: LedgerState, of: AttemptRecord, atMs: number, revision: number): Place[] {
  const places: Place[] = [];
  for (const budget of state.index.find(of)) {
    if (revision < budget.countedFrom) continue;
    const place = placeIn(budget, of, state.settings.timezone, atMs);
    if (within(place.span, atMs)) places.push(place);
  }
  return places;
}

/** As events name it. */
export function toBudgetPlace(place: Place): BudgetPlace {
  return {
    bucket: place.values,
    generation: place.budget.generation,
    id: place.budget.id,
    setAside: place.setAside < 0 ? undefined : place.setAside,
    window: toWindow(place.span),
  };
}

export const bucketAt = (place: Place): BucketState | undefined =>
  place.budget.windows.get(windowKey(place.span))?.buckets.get(place.key);

/** Whether a window is over and its numbers no longer matter to any decision. */
const closed = (span: TimeSpan, atMs: number): boolean =>
  recurs(span.kind) && span.toMs !== undefined && span.toMs <= atMs;

/**
 * The bucket to count in, made where it is missing; undefined where its window is closed and gone from memory.
 * A new window is the moment to let the closed ones go.
 */
export function openBucket(
  state: LedgerState,
  place: Place,
  journal: Journal,
): { window: WindowState; bucket: BucketState } | undefined {
  const { budget, span } = place;
  let window = budget.windows.get(windowKey(span));
  if (!window) {
    if (closed(span, state.at)) return undefined;
    for (const [key, old] of budget.windows) {
      if (old.holds === 0 && closed(old.span, state.at)) journal.remove(budget.windows, key);
    }
    window = { span, buckets: new Map(), holds: 0, fullAlerted: false };
    journal.put(budget.windows, windowKey(span), window);
  }
  let bucket = window.buckets.get(place.key);
  if (!bucket) {
    bucket = emptyBucket(budget, place.values);
    journal.put(window.buckets, place.key, bucket);
  }
  return { window, bucket };
}

export function emptyBucket(budget: BudgetState, values: Bucket | undefined): BucketState {
  return {
    charged: ZERO,
    held: ZERO,
    values,
    setAsides: budget.setAsides.map(() => ({ charged: ZERO, held: ZERO })),
    fired: [],
  };
}

/** Adds to what is charged in a place. */
export function charge(state: LedgerState, place: Place, amount: bigint, journal: Journal): void {
  const opened = openBucket(state, place, journal);
  if (!opened || amount === 0n) return;
  const { bucket } = opened;
  journal.set(bucket, 'charged', money(bucket.charged + amount));
  const part = place.setAside < 0 ? undefined : bucket.setAsides[place.setAside];
  if (part) journal.set(part, 'charged', money(part.charged + amount));
}

/** Holds an amount in a place; returns how to find the hold again. */
export function hold(
  state: LedgerState,
  place: Place,
  amount: Money,
  journal: Journal,
): HeldPlace | undefined {
  const opened = openBucket(state, place, journal);
  if (!opened) return undefined;
  const { window, bucket } = opened;
  journal.set(window, 'holds', window.holds + 1);
  journal.set(bucket, 'held', money(bucket.held + amount));
  const part = place.setAside < 0 ? undefined : bucket.setAsides[place.setAside];
  if (part) journal.set(part, 'held', money(part.held + amount));
  return heldPlace(place);
}

export const heldPlace = (place: Place): HeldPlace => ({
  budget: place.budget.id,
  generation: place.budget.generation,
  window: windowKey(place.span),
  bucket: place.key,
  setAside: place.setAside,
});

/** Takes a hold out exactly where it was put in. */
export function unhold(
  state: LedgerState,
  places: readonly HeldPlace[],
  amount: Money,
  journal: Journal,
): void {
  for (const place of places) {
    const budget = state.budgets.get(place.budget);
    if (budget?.generation !== place.generation || budget.retired) continue;
    const window = budget.windows.get(place.window);
    const bucket = window?.buckets.get(place.bucket);
    if (!window || !bucket) continue;
    journal.set(window, 'holds', window.holds - 1);
    journal.set(bucket, 'held', money(bucket.held - amount));
    const part = place.setAside < 0 ? undefined : bucket.setAsides[place.setAside];
    if (part) journal.set(part, 'held', money(part.held - amount));
  }
}

/** The place an event names, where its budget still stands in that generation. */
export function placeNamed(state: LedgerState, named: BudgetPlace): Place | undefined {
  const budget = state.budgets.get(named.id);
  if (!budget || budget.retired || budget.generation !== named.generation) return undefined;
  const from = named.window.from === undefined ? undefined : keyOfWindow(named.window);
  const to = named.window.to === undefined ? undefined : toMs(named.window.to);
  return {
    budget,
    span: { kind: named.window.kind, fromMs: from, toMs: to },
    values: named.bucket,
    key: bucketKey(named.bucket),
    setAside: named.setAside ?? -1,
  };
}
