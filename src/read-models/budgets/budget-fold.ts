import type { BudgetDefinition, BudgetPlace, OpeningBalance } from '../../domain/budget';
import type {
  BudgetAmended,
  BudgetDefined,
  BudgetRetired,
  Recorded,
  UsageCharged,
} from '../../domain/events';
import { parseMoney } from '../../domain/money';
import { recurs, toMs } from '../../domain/windows';
import { UnknownEventTypeError } from '../read-model';
import { revisionOfId } from '../revision-of-id';
import { BucketDeltas } from './bucket-deltas';

/** A budget as this model stores it. */
export interface StoredBudget {
  readonly id: string;
  readonly generation: number;
  readonly retired: boolean;
  readonly definition: BudgetDefinition;
  /** Spending judged before this revision does not count (countFrom "now"); else −1. */
  readonly countedFrom: number;
  /** The event that last filled the buckets from history, and its time (ms). */
  readonly openingRevision: number;
  readonly openingAtMs: number;
  readonly revision: number;
}

/**
 * The numbers of budgets from a batch of events.
 *
 * Invariant: `held` of a bucket is the sum of the amounts of the held reservations that were put into it, after any
 * sequence. A hold is put in once: by its SpendReserved, or by the opening of a budget that was defined (or recounted) while
 * it was held. It is taken out once, by the event that ends it: the first UsageCharged of the reservation (neither late
 * nor a duplicate send), ReservationReleased, or ReservationExpired where the hold is given back. (With assume-spent the
 * assumed UsageCharged of the same batch ends it.) The event names every place where the attempt counts now, which can be
 * more than where the hold was put: `holds` tells which of them have it.
 */
export class BudgetFold {
  readonly deltas = new BucketDeltas();
  readonly changed = new Map<string, StoredBudget>();
  private readonly known = new Map<string, StoredBudget>();

  constructor(known: readonly StoredBudget[]) {
    for (const budget of known) this.known.set(budget.id, budget);
  }

  add(event: Recorded): void {
    switch (event.type) {
      case 'BudgetDefined':
        this.defined(event);
        return;
      case 'BudgetAmended':
        this.amended(event);
        return;
      case 'BudgetRetired':
        this.retired(event);
        return;
      case 'SpendReserved': {
        const amount = parseMoney(event.data.amount);
        for (const place of event.data.budgets) if (this.stands(place)) this.deltas.add(place, 0n, amount);
        return;
      }
      case 'UsageCharged':
        this.charged(event);
        return;
      case 'ChargeCorrected': {
        const change = parseMoney(event.data.cost) - parseMoney(event.data.previousCost);
        for (const place of event.data.budgets) if (this.stands(place)) this.deltas.add(place, change, 0n);
        return;
      }
      case 'ReservationReleased':
        this.unhold(event.data);
        return;
      case 'ReservationExpired':
        if (event.data.onExpiry === 'release') this.unhold(event.data, toMs(event.data.expiredAt));
        return;
      case 'LedgerOpened':
      case 'SettingsChanged':
      case 'PriceListed':
      case 'PriceSet':
      case 'PriceRetired':
      case 'SpendEstimated':
      case 'SpendRefused':
      case 'ReservationExtended':
      case 'AlertRaised':
        return;
      default:
        throw unknownType(event);
    }
  }

  private defined({ data, revision, at }: Recorded<BudgetDefined>): void {
    const { budget: definition, generation, countFrom, opening } = data;
    this.put({
      id: definition.id,
      generation,
      retired: false,
      definition,
      countedFrom: countFrom === 'now' ? revision : -1,
      openingRevision: revision,
      openingAtMs: toMs(at),
      revision,
    });
    this.refill(definition.id, generation, opening);
  }

  private amended({ data, revision, at }: Recorded<BudgetAmended>): void {
    const { budget: definition, generation, opening } = data;
    const old = this.known.get(definition.id);
    if (!old) throw new Error(`event ${String(revision)} amends budget ${definition.id}, which is not known`);
    const amended = { ...old, definition, revision };
    this.put(opening ? { ...amended, openingRevision: revision, openingAtMs: toMs(at) } : amended);
    if (opening) this.refill(definition.id, generation, opening);
  }

  private retired({ data, revision }: Recorded<BudgetRetired>): void {
    const old = this.known.get(data.id);
    if (!old) throw new Error(`event ${String(revision)} retires budget ${data.id}, which is not known`);
    this.put({ ...old, retired: true, revision });
    this.deltas.empty(data.id);
  }

  private charged({ data }: Recorded<UsageCharged>): void {
    const cost = parseMoney(data.cost);
    const ends = data.reservationId !== undefined && !data.duplicateSend && !data.late;
    const amount: bigint = ends && data.reserved !== undefined ? parseMoney(data.reserved) : 0n;
    const reservedAt = data.reservationId === undefined ? -1 : revisionOfId(data.reservationId);
    for (const place of data.budgets) {
      if (!this.stands(place)) continue;
      this.deltas.add(place, cost, this.holds(place, reservedAt) ? -amount : 0n);
    }
  }

  private unhold(
    data: {
      readonly reservationId: string;
      readonly amount: string;
      readonly budgets: readonly BudgetPlace[];
    },
    expiredAtMs = Number.POSITIVE_INFINITY,
  ): void {
    const amount: bigint = parseMoney(data.amount);
    const reservedAt = revisionOfId(data.reservationId);
    for (const place of data.budgets) {
      if (this.stands(place) && this.holds(place, reservedAt, expiredAtMs))
        this.deltas.add(place, 0n, -amount);
    }
  }

  /** Whether the budget still stands in the generation a place names. */
  private stands(place: BudgetPlace): boolean {
    const budget = this.known.get(place.id);
    return budget?.generation === place.generation && !budget.retired;
  }

  /**
   * Whether a reservation's hold is in a place its end names. Reserved after the budget's opening: always, match and window are
   * the same since. Before it: only where the opening counted it, which looks at windows still open then, and not
   * at holds that were due to be given back by then, recorded or not.
   */
  private holds(place: BudgetPlace, reservedAt: number, expiredAtMs = Number.POSITIVE_INFINITY): boolean {
    const budget = this.known.get(place.id);
    if (!budget || reservedAt < budget.countedFrom) return false;
    if (reservedAt > budget.openingRevision) return true;
    const { kind, to } = place.window;
    const over = recurs(kind) && to !== undefined && toMs(to) <= budget.openingAtMs;
    return !over && expiredAtMs > budget.openingAtMs;
  }

  private put(budget: StoredBudget): void {
    this.known.set(budget.id, budget);
    this.changed.set(budget.id, budget);
  }

  private refill(id: string, generation: number, opening: readonly OpeningBalance[]): void {
    this.deltas.empty(id);
    for (const balance of opening) this.deltas.open(id, generation, balance);
  }
}

function unknownType(event: never): UnknownEventTypeError {
  const { type, revision } = event as Recorded;
  return new UnknownEventTypeError(type, revision);
}

/** The budgets that a fold of these events must know beforehand. */
export function budgetsNamed(events: readonly Recorded[]): string[] {
  const named = new Set<string>();
  for (const { data } of events) {
    if ('budgets' in data) for (const { id } of data.budgets) named.add(id);
    else if ('generation' in data) named.add('budget' in data ? data.budget.id : data.id);
  }
  return [...named].sort();
}
