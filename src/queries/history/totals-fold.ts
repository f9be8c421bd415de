import type { BudgetDefinition, BudgetPlace, OpeningBalance } from '../../domain/budget';
import type { BudgetAmended, BudgetDefined, LedgerEvent, Recorded, SpendReserved } from '../../domain/events';
import { matches } from '../../domain/matching';
import { parseMoney } from '../../domain/money';
import { within } from '../../domain/places';
import { DEFAULT_SETTINGS } from '../../domain/settings';
import { attemptOf } from '../../domain/state';
import type { AttemptRecord } from '../../domain/state';
import { keyOfWindow, recurs, toMs, windowAt, windowKey } from '../../domain/windows';

interface WindowSum {
  charged: bigint;
  held: bigint;
}

interface Budget {
  readonly definition: BudgetDefinition;
  readonly generation: number;
  /** Spending judged before this revision does not count; else −1. */
  readonly countedFrom: number;
  /** By the window's beginning; begun anew with each opening. */
  readonly windows: Map<number, WindowSum>;
}

interface Hold {
  readonly amount: bigint;
  readonly revision: number;
  readonly of: AttemptRecord;
  readonly reservedAtMs: number;
  readonly releases: boolean;
  expiresAtMs: number;
  /** Where it was put in, and must be taken out again. */
  readonly sums: WindowSum[];
}

/** One window of a budget, over its buckets. Nano-dollars. */
export interface WindowFigures {
  readonly budget: string;
  readonly generation: number;
  readonly windowKey: number;
  readonly charged: bigint;
  readonly held: bigint;
}

/**
 * The sums of a ledger from its events alone, for comparing with the read models. It is written apart from them: each
 * hold is followed from where it was put in to where it ends. Memory grows with what is held and with windows only.
 */
export class TotalsFold {
  charged = 0n;
  held = 0n;
  private timezone = DEFAULT_SETTINGS.timezone;
  private readonly holds = new Map<string, Hold>();
  private readonly budgets = new Map<string, Budget>();

  get heldReservations(): number {
    return this.holds.size;
  }

  /** Windows that were ever counted in, of budgets that stand. */
  windows(): WindowFigures[] {
    return [...this.budgets].flatMap(([budget, { generation, windows }]) =>
      [...windows].map(([key, { charged, held }]) => ({ budget, generation, windowKey: key, charged, held })),
    );
  }

  apply(event: Recorded): void {
    switch (event.type) {
      case 'LedgerOpened':
      case 'SettingsChanged':
        this.timezone = event.data.settings.timezone;
        return;
      case 'BudgetDefined':
      case 'BudgetAmended':
        this.budget(event, event.revision, toMs(event.at));
        return;
      case 'BudgetRetired':
        this.budgets.delete(event.data.id);
        return;
      case 'SpendReserved':
        this.reserved(event, event.revision, toMs(event.at));
        return;
      case 'UsageCharged':
        if (event.data.reservationId !== undefined && !event.data.duplicateSend) {
          this.unhold(event.data.reservationId);
        }
        this.charge(parseMoney(event.data.cost), event.data.budgets);
        return;
      case 'ChargeCorrected':
        this.charge(parseMoney(event.data.cost) - parseMoney(event.data.previousCost), event.data.budgets);
        return;
      default:
        this.ended(event);
    }
  }

  private ended(event: LedgerEvent): void {
    if (event.type === 'ReservationReleased') this.unhold(event.data.reservationId);
    // With assume-spent the charge that follows takes the hold's place.
    else if (event.type === 'ReservationExpired' && event.data.onExpiry === 'release') {
      this.unhold(event.data.reservationId);
    } else if (event.type === 'ReservationExtended') {
      const hold = this.holds.get(event.data.reservationId);
      if (hold) hold.expiresAtMs = toMs(event.data.expiresAt);
    }
  }

  private reserved({ data }: SpendReserved, revision: number, atMs: number): void {
    const amount = parseMoney(data.amount);
    const sums = data.budgets.flatMap((place) => this.sumAt(place) ?? []);
    for (const sum of sums) sum.held += amount;
    this.held += amount;
    this.holds.set(data.reservationId, {
      amount,
      revision,
      of: attemptOf(data),
      reservedAtMs: atMs,
      releases: data.onExpiry === 'release',
      expiresAtMs: toMs(data.expiresAt),
      sums,
    });
  }

  private unhold(id: string): void {
    const hold = this.holds.get(id);
    if (!hold) return;
    this.holds.delete(id);
    this.held -= hold.amount;
    for (const sum of hold.sums) sum.held -= hold.amount;
  }

  private charge(amount: bigint, places: readonly BudgetPlace[]): void {
    this.charged += amount;
    for (const place of places) {
      const sum = this.sumAt(place);
      if (sum) sum.charged += amount;
    }
  }

  /** The window a place names, where its budget stands in that generation. */
  private sumAt({ id, generation, window }: BudgetPlace): WindowSum | undefined {
    const budget = this.budgets.get(id);
    return budget?.generation === generation ? sumIn(budget, keyOfWindow(window)) : undefined;
  }

  private budget({ type, data }: BudgetDefined | BudgetAmended, revision: number, atMs: number): void {
    const { budget: definition, generation, opening } = data;
    const old = this.budgets.get(definition.id);
    if (type === 'BudgetAmended' && !opening) {
      if (old) this.budgets.set(definition.id, { ...old, definition });
      return;
    }
    const defined = type === 'BudgetDefined' && data.countFrom === 'now' ? revision : -1;
    const countedFrom = type === 'BudgetAmended' ? (old?.countedFrom ?? -1) : defined;
    const budget: Budget = { definition, generation, countedFrom, windows: new Map() };
    this.budgets.set(definition.id, budget);
    for (const balance of opening ?? []) fill(budget, balance);
    if (defined < 0) this.adopt(budget, atMs);
  }

  /** The holds that an opening counts: their end must be taken out of it. */
  private adopt(budget: Budget, atMs: number): void {
    const { definition, countedFrom } = budget;
    for (const hold of this.holds.values()) {
      if (hold.revision < countedFrom || !matches(definition.match, hold.of)) continue;
      if (hold.releases && hold.expiresAtMs <= atMs) continue;
      const span = windowAt(definition.window, this.timezone, hold.reservedAtMs);
      const isOver = recurs(span.kind) && span.toMs !== undefined && span.toMs <= atMs;
      const sum = budget.windows.get(windowKey(span));
      if (sum && !isOver && within(span, hold.reservedAtMs)) hold.sums.push(sum);
    }
  }
}

function sumIn(budget: Budget, key: number): WindowSum {
  let sum = budget.windows.get(key);
  if (!sum) {
    sum = { charged: 0n, held: 0n };
    budget.windows.set(key, sum);
  }
  return sum;
}

function fill(budget: Budget, { window, charged, held }: OpeningBalance): void {
  const sum = sumIn(budget, keyOfWindow(window));
  sum.charged += parseMoney(charged);
  sum.held += parseMoney(held);
}
