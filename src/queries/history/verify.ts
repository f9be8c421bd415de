import type { Recorded } from '../../domain/events';
import { formatMoney } from '../../domain/money';
import { GENESIS_HASH, verifySealed } from '../../domain/sealing';
import { decodeEvent } from '../../domain/upcast';
import { toMs, toTime } from '../../domain/windows';
import type { StoredEvent } from '../../event-store/event-store';
import type { Totals } from '../../read-models/totals';
import { pagesOf } from './log-pages';
import type { LogPages } from './log-pages';
import { TotalsFold } from './totals-fold';
import type { WindowFigures } from './totals-fold';

/** Amounts decimal USD. */
export interface VerifiedTotals {
  /** The revision both were taken at. */
  readonly position: number;
  readonly charged: string;
  readonly held: string;
  readonly heldReservations: number;
}

export interface Verification {
  readonly ok: boolean;
  /** Of the last event, as it says itself. */
  readonly head: { readonly revision: number; readonly hash: string };
  /** How many were read. */
  readonly events: number;
  /** In words, each with the revision it is about; at most 100, `faultCount` counts all. */
  readonly faults: readonly string[];
  readonly faultCount: number;
  /** Both at one position; without the read model's where nothing is projected yet. Absent where the log is damaged. */
  readonly totals?: { readonly readModel?: VerifiedTotals; readonly fold: VerifiedTotals };
}

const MOST_FAULTS = 100;

/**
 * Walks a ledger's log over its exact bytes, and compares the read models' totals with a fold of its own at their
 * positions. `totals` must be read before the head is.
 */
export async function verifyLog(
  log: LogPages,
  ledger: string,
  head: number,
  totals: Totals | undefined,
): Promise<Verification> {
  const walk = new Walk(ledger, totals);
  for await (const page of pagesOf(log, ledger, 0, head)) for (const event of page) walk.take(event);
  return walk.result(head);
}

class Walk {
  private readonly fold = new TotalsFold();
  private readonly faults: string[] = [];
  private faultCount = 0;
  private events = 0;
  private next = 0;
  private hash = GENESIS_HASH;
  private atMs = 0;
  /** The log is damaged: from there on sums say nothing more. */
  private isBroken = false;
  private spendFold: VerifiedTotals | undefined;

  constructor(
    private readonly ledger: string,
    private readonly totals: Totals | undefined,
  ) {}

  take(event: StoredEvent): void {
    this.events += 1;
    if (event.revision !== this.next) {
      this.damage(this.next, `is missing, up to revision ${event.revision - 1}`);
    }
    this.next = event.revision + 1;
    const verified = verifySealed(event.bytes, this.hash);
    if (!verified.ok) this.damage(event.revision, verified.fault);
    const recorded = verified.ok ? verified.recorded : readable(event.bytes);
    this.hash = recorded?.metadata.hash ?? '';
    if (verified.ok) this.compare(event, verified.recorded);
    this.apply(recorded);
    this.reach(event.revision);
  }

  result(head: number): Verification {
    if (this.next !== head + 1) this.damage(this.next, `is missing: the head was revision ${head}`);
    const { totals } = this;
    const ahead = Math.max(totals?.spend.position ?? -1, totals?.budgets.position ?? -1);
    if (ahead > head) {
      this.damage(head + 1, `is missing: read models have seen revision ${ahead}`);
    }
    const fold = this.spendFold ?? this.figures(this.next - 1);
    return {
      ok: this.faultCount === 0,
      head: { revision: this.next - 1, hash: this.hash },
      events: this.events,
      faults: this.faults,
      faultCount: this.faultCount,
      ...(!this.isBroken && { totals: totals ? { readModel: ofReadModel(totals), fold } : { fold } }),
    };
  }

  /** The row around the bytes, and the envelope's order: the hash does not cover the one, nor prove the other. */
  private compare(event: StoredEvent, { id, type, revision, ledger, at }: Recorded): void {
    const complain = (detail: string): void => {
      this.damage(event.revision, detail);
    };
    if (ledger !== this.ledger) complain('is an event of another ledger');
    if (revision !== event.revision) complain(`says that it is revision ${revision}`);
    if (id !== event.id || type !== event.type) complain('is stored under another id or type');
    if (toMs(at) !== event.at) complain('is stored under another time');
    if (toMs(at) < this.atMs) complain('is earlier than the event before it');
    this.atMs = Math.max(this.atMs, toMs(at));
  }

  private apply(recorded: Recorded | undefined): void {
    if (!recorded || this.isBroken) return;
    try {
      this.fold.apply(recorded);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.damage(recorded.revision, `cannot be added up: ${reason}`);
    }
  }

  /** At the positions of the read models their sums must be the fold's. */
  private reach(revision: number): void {
    const { totals } = this;
    if (!totals || this.isBroken) return;
    if (revision === totals.spend.position) {
      this.spendFold = this.figures(revision);
      this.sameHash('spend', totals.spend.hash, revision);
      this.compareSpend(totals.spend, this.spendFold);
    }
    if (revision === totals.budgets.position) {
      this.sameHash('budgets', totals.budgets.hash, revision);
      this.compareWindows(totals.budgets.windows);
    }
  }

  private sameHash(model: string, hash: string, revision: number): void {
    if (hash === this.hash) return;
    this.fault(`read model ${model} was built from another event at revision ${revision}`);
  }

  private compareSpend(spend: Totals['spend'], fold: VerifiedTotals): void {
    const compare = (what: string, stored: string | number, folded: string | number): void => {
      if (stored !== folded) this.fault(`read model ${what} is ${stored}, the log says ${folded}`);
    };
    compare('spend: charged', formatMoney(spend.charged), fold.charged);
    compare('spend: charged by day', formatMoney(spend.chargedInCube), fold.charged);
    compare('spend: held', formatMoney(spend.held), fold.held);
    compare('spend: held reservations', spend.heldReservations, fold.heldReservations);
  }

  private compareWindows(windows: Totals['budgets']['windows']): void {
    const keyOf = ({ budget, generation, windowKey }: Omit<WindowFigures, 'charged' | 'held'>): string =>
      JSON.stringify([budget, generation, windowKey]);
    const stored = new Map(windows.map((window) => [keyOf(window), window]));
    const folded = new Map(this.fold.windows().map((window) => [keyOf(window), window]));
    for (const key of new Set([...stored.keys(), ...folded.keys()])) {
      const [a, b] = [stored.get(key), folded.get(key)];
      const named = a ?? b;
      if (!named || ((a?.charged ?? 0n) === (b?.charged ?? 0n) && (a?.held ?? 0n) === (b?.held ?? 0n)))
        continue;
      const window = named.windowKey === 0 ? '' : `, window from ${toTime(named.windowKey)}`;
      const numbers = (sum: typeof a | typeof b): string =>
        `charged ${formatMoney(sum?.charged ?? 0n)}, held ${formatMoney(sum?.held ?? 0n)}`;
      this.fault(`read model budget ${named.budget}${window}: ${numbers(a)}; the log says ${numbers(b)}`);
    }
  }

  private figures(position: number): VerifiedTotals {
    const { charged, held, heldReservations } = this.fold;
    return { position, charged: formatMoney(charged), held: formatMoney(held), heldReservations };
  }

  /** One cause, one fault: what a damaged log adds up to is not held against anybody. */
  private damage(revision: number, detail: string): void {
    this.isBroken = true;
    this.fault(`revision ${revision} ${detail}`);
  }

  private fault(detail: string): void {
    this.faultCount += 1;
    if (this.faults.length < MOST_FAULTS) this.faults.push(detail);
  }
}

/** What can still be read of an event that did not verify. */
function readable(bytes: Buffer): Recorded | undefined {
  try {
    const event = decodeEvent(bytes);
    const { metadata } = event as { readonly metadata?: Partial<Recorded['metadata']> };
    return typeof metadata?.hash === 'string' ? event : undefined;
  } catch {
    return undefined;
  }
}

function ofReadModel({ spend }: Totals): VerifiedTotals {
  const { position, charged, held, heldReservations } = spend;
  return { position, charged: formatMoney(charged), held: formatMoney(held), heldReservations };
}
