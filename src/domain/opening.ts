import type { Bucket, BudgetDefinition, OpeningBalance } from './budget';
import type { ChargeCorrected, LedgerEvent, SpendReserved, UsageCharged } from './events';
import { isNewGeneration } from './decide-budget';
import { revisionIn } from './identifiers';
import { bucketKey, bucketOf, matches, setAsideOf } from './matching';
import { formatMoney, parseMoney } from './money';
import { within } from './places';
import { attemptOf } from './state';
import type { AttemptRecord, LedgerState } from './state';
import { recurs, toMs, toWindow, windowAt, windowKey } from './windows';
import type { TimeSpan } from './windows';

interface Sums {
  readonly span: TimeSpan;
  readonly bucket: Bucket | undefined;
  charged: bigint;
  held: bigint;
  readonly setAsides: Map<number, { charged: bigint; held: bigint }>;
}

interface Hold {
  readonly sums: Sums;
  readonly setAside: number;
  readonly amount: bigint;
  readonly releases: boolean;
  expiresAtMs: number;
}

/**
 * What history already counts against a budget that is defined in the middle of its window: what was spent and
 * held in it, per bucket and set-aside (RULES 3). Feed it every event from the window's beginning (less five
 * minutes, for usage recorded ahead of its moment) up to the revision the budget is judged at.
 */
export class OpeningFold {
  private readonly sums = new Map<string, Sums>();
  private readonly holds = new Map<string, Hold>();
  private readonly timezone: string;
  /** A budget told to count from a later "now" keeps to it when it is amended. */
  private readonly countedFrom: number;

  constructor(
    private readonly definition: BudgetDefinition,
    state: Pick<LedgerState, 'settings' | 'budgets'>,
    private readonly atMs: number,
  ) {
    this.timezone = state.settings.timezone;
    const standing = state.budgets.get(definition.id);
    const amends = standing && !standing.retired && !isNewGeneration(standing.definition, definition);
    this.countedFrom = amends ? standing.countedFrom : -1;
  }

  apply(event: LedgerEvent & { readonly at: string; readonly revision: number }): void {
    switch (event.type) {
      case 'SpendReserved':
        return this.reserved(event, toMs(event.at), event.revision);
      case 'UsageCharged':
        return this.charged(event, event.revision);
      case 'ChargeCorrected':
        return this.corrected(event);
      case 'ReservationReleased':
        return this.unhold(event.data.reservationId);
      case 'ReservationExpired':
        // With assume-spent the assumed charge that follows takes the hold's place.
        if (event.data.onExpiry === 'release') this.unhold(event.data.reservationId);
        return;
      case 'ReservationExtended': {
        const hold = this.holds.get(event.data.reservationId);
        if (hold) hold.expiresAtMs = toMs(event.data.expiresAt);
        return;
      }
      default:
        return;
    }
  }

  /**
   * The opening balances, as the event keeps them, for a budget defined at a moment (default: the one the fold was
   * made for; the writer decides later than it began to fold). May be asked again after more events.
   */
  result(atMs = this.atMs): OpeningBalance[] {
    const due = [...this.holds].filter(([, hold]) => hold.releases && hold.expiresAtMs <= atMs);
    for (const [, hold] of due) book(hold.sums, hold.setAside, 'held', -hold.amount);
    const open = [...this.sums.values()].filter(
      ({ span }) => !(recurs(span.kind) && span.toMs !== undefined && span.toMs <= atMs),
    );
    const balances = open.map(({ span, bucket, charged, held, setAsides }) => ({
      window: toWindow(span),
      bucket,
      charged: formatMoney(charged),
      held: formatMoney(held),
      setAsides:
        setAsides.size === 0
          ? undefined
          : [...setAsides].map(([index, part]) => ({
              index,
              charged: formatMoney(part.charged),
              held: formatMoney(part.held),
            })),
    }));
    for (const [, hold] of due) book(hold.sums, hold.setAside, 'held', hold.amount);
    return balances;
  }

  private reserved({ data }: SpendReserved, reservedAtMs: number, revision: number): void {
    if (revision < this.countedFrom) return;
    const found = this.place(attemptOf(data), reservedAtMs);
    if (!found) return;
    const amount = parseMoney(data.amount);
    this.holds.set(data.reservationId, {
      ...found,
      amount,
      releases: data.onExpiry === 'release',
      expiresAtMs: toMs(data.expiresAt),
    });
    book(found.sums, found.setAside, 'held', amount);
  }

  private charged({ data }: UsageCharged, revision: number): void {
    if (data.reservationId !== undefined && !data.duplicateSend) this.unhold(data.reservationId);
    if (judgedAt(data.reservationId, revision) < this.countedFrom) return;
    const found = this.place(attemptOf(data), toMs(data.countedAt));
    if (found) book(found.sums, found.setAside, 'charged', parseMoney(data.cost));
  }

  private corrected({ data }: ChargeCorrected): void {
    if (judgedAt(data.reservationId ?? data.chargeId, 0) < this.countedFrom) return;
    const found = this.place(attemptOf(data), toMs(data.countedAt));
    if (found)
      book(found.sums, found.setAside, 'charged', parseMoney(data.cost) - parseMoney(data.previousCost));
  }

  private unhold(id: string): void {
    const hold = this.holds.get(id);
    if (!hold) return;
    book(hold.sums, hold.setAside, 'held', -hold.amount);
    this.holds.delete(id);
  }

  /** The sums an attempt counts in, where it matches and its window is not over. */
  private place(of: AttemptRecord, atMs: number): { sums: Sums; setAside: number } | undefined {
    const { definition } = this;
    if (!matches(definition.match, of)) return undefined;
    const span = windowAt(definition.window, this.timezone, atMs);
    if (!within(span, atMs)) return undefined;
    if (over(span, this.atMs)) return undefined;
    const bucket = bucketOf(definition.each, of);
    const key = `${windowKey(span)}\u0000${bucketKey(bucket)}`;
    let sums = this.sums.get(key);
    if (!sums) {
      sums = { span, bucket, charged: 0n, held: 0n, setAsides: new Map() };
      this.sums.set(key, sums);
    }
    return { sums, setAside: setAsideOf(definition.setAsides, of) };
  }
}

const over = (span: TimeSpan, atMs: number): boolean =>
  recurs(span.kind) && span.toMs !== undefined && span.toMs <= atMs;

/** The revision spending was judged at: its reservation's, else the charge's own. */
const judgedAt = (id: string | undefined, otherwise: number): number =>
  (id === undefined ? undefined : revisionIn(id)) ?? otherwise;

function book(sums: Sums, setAside: number, what: 'charged' | 'held', amount: bigint): void {
  sums[what] += amount;
  if (setAside < 0) return;
  const part = sums.setAsides.get(setAside) ?? { charged: 0n, held: 0n };
  part[what] += amount;
  sums.setAsides.set(setAside, part);
}
