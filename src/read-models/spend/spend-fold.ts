import type {
  AlertRaised,
  AttemptData,
  ChargeCorrected,
  Recorded,
  SpendEstimated,
  SpendRefused,
  SpendReserved,
  UsageCharged,
} from '../../domain/events';
import { parseMoney } from '../../domain/money';
import { dayOf, toMs } from '../../domain/windows';
import { UnknownEventTypeError } from '../read-model';
import { revisionOfId } from '../revision-of-id';
import { chargeColumns, nanos, placesWithoutNumbers } from './attempt-row';
import type { AttemptPatch, AttemptRow } from './attempt-row';
import type { ChargedRow } from './attempt-table';
import type { Cell } from './spend-days';
import { SpendDays } from './spend-days';

/** An estimate whose reservation or refusal follows: `[requestId, attempt, revision]`. */
export type OpenEstimate = readonly [string, number, number];

/** What the fold carries over to the next batch. */
export interface SpendMemory {
  readonly timezone: string;
  readonly estimates: readonly OpenEstimate[];
}

/** A batch of events, aggregated: rows to insert, rows to change, what is added to the cube. */
export class SpendFold {
  readonly inserted = new Map<number, AttemptRow>();
  readonly patched = new Map<number, AttemptPatch>();
  readonly days = new SpendDays();
  private readonly charges = new Map<number, ChargedRow>();
  private timezone: string;
  private estimates: readonly OpenEstimate[];

  constructor(memory: SpendMemory, charges: readonly ChargedRow[]) {
    this.timezone = memory.timezone;
    this.estimates = memory.estimates;
    for (const charge of charges) this.charges.set(charge.chargeRevision, charge);
  }

  get memory(): SpendMemory {
    return { timezone: this.timezone, estimates: this.estimates };
  }

  add(event: Recorded): void {
    switch (event.type) {
      case 'LedgerOpened':
      case 'SettingsChanged':
        this.timezone = event.data.settings.timezone;
        return;
      case 'SpendEstimated':
        this.estimated(event);
        return;
      case 'SpendReserved':
        this.reserved(event);
        return;
      case 'SpendRefused':
        this.refused(event);
        return;
      case 'UsageCharged':
        this.charged(event);
        return;
      case 'ChargeCorrected':
        this.corrected(event);
        return;
      case 'ReservationReleased':
        this.touch(revisionOfId(event.data.reservationId), event.revision).state = 'released';
        return;
      case 'ReservationExpired': {
        // With assume-spent the assumed charge that follows ends the hold.
        const row = this.touch(revisionOfId(event.data.reservationId), event.revision);
        if (event.data.onExpiry === 'release') row.state = 'expired-released';
        return;
      }
      case 'ReservationExtended':
        this.touch(revisionOfId(event.data.reservationId), event.revision).expires_at = event.data.expiresAt;
        return;
      case 'AlertRaised':
        this.alerted(event);
        return;
      case 'BudgetDefined':
      case 'BudgetAmended':
      case 'BudgetRetired':
      case 'PriceListed':
      case 'PriceSet':
      case 'PriceRetired':
        return;
      default:
        throw unknownType(event);
    }
  }

  private estimated(event: Recorded<SpendEstimated>): void {
    const { data, revision } = event;
    if (!data.advisory) {
      this.estimates = [...this.estimates, [data.requestId, data.attempt, revision]];
      return;
    }
    const { candidate, usage, priceId, priceExact } = data;
    this.inserted.set(revision, {
      revision,
      state: 'asked',
      ...this.about(data, event.at),
      amount: data.amount === undefined ? undefined : nanos(data.amount),
      details: { candidate, usage, priceId, priceExact },
      revisions: [revision],
    });
  }

  private reserved(event: Recorded<SpendReserved>): void {
    const { data, revision } = event;
    const about = this.about(data, event.at);
    this.inserted.set(revision, {
      revision,
      state: 'held',
      ...about,
      reservation_id: data.reservationId,
      amount: nanos(data.amount),
      expires_at: data.expiresAt,
      details: {
        candidate: data.candidate,
        usage: data.usage,
        priceId: data.priceId,
        maxOutputTokens: data.maxOutputTokens,
        onExpiry: data.onExpiry,
        fallbackFrom: data.fallbackFrom,
        skipped: data.skipped,
        warnings: data.warnings,
        wouldRefuse: data.wouldRefuse,
        unbudgeted: data.unbudgeted,
      },
      budgets: placesWithoutNumbers(data.budgets),
      revisions: [...this.estimatesOf(data.requestId, data.attempt), revision],
    });
    this.days.add(cellOf(about), { reserved: 1 });
  }

  private refused(event: Recorded<SpendRefused>): void {
    const { data, revision } = event;
    const about = this.about(data, event.at);
    const { usage, retryAt, nextAttempt } = data;
    this.inserted.set(revision, {
      revision,
      state: 'refused',
      ...about,
      amount: data.amount === undefined ? undefined : nanos(data.amount),
      code: data.code,
      reasons: data.reasons,
      details: { usage, retryAt, nextAttempt },
      revisions: [...this.estimatesOf(data.requestId, data.attempt), revision],
    });
    const refusedAmount = data.amount === undefined ? 0n : parseMoney(data.amount);
    this.days.add(cellOf(about), { refused: 1, refusedAmount });
  }

  private charged(event: Recorded<UsageCharged>): void {
    const { data, revision } = event;
    const about = this.about(data, data.countedAt);
    const columns = chargeColumns(event);
    const ofReservation = data.reservationId !== undefined && !data.duplicateSend;
    const key = ofReservation ? revisionOfId(data.reservationId) : revision;
    if (ofReservation) {
      const row = this.touch(key, revision);
      row.state = data.quality;
      row.charge = columns;
    } else {
      this.inserted.set(revision, {
        revision,
        state: 'charged',
        ...about,
        reservation_id: data.reservationId,
        usage_id: data.usageId,
        budgets: placesWithoutNumbers(data.budgets),
        revisions: [revision],
        charge: columns,
      });
    }
    const cell = cellOf(about);
    this.note(key, columns.charge_revision, ofReservation, event, cell);
    const unpriced = data.unpriced ? 1 : 0;
    this.days.add(cell, { charges: 1, charged: parseMoney(data.cost), unpriced, usage: data.usage });
  }

  private corrected(event: Recorded<ChargeCorrected>): void {
    const { data, revision } = event;
    const known = this.charges.get(revisionOfId(data.chargeId));
    if (!known)
      throw new Error(`event ${String(revision)} corrects charge ${data.chargeId}, which is not known`);
    const row = this.touch(known.revision, revision);
    row.charge = chargeColumns(event);
    if (known.isReservation && data.cause === 'usage') row.state = data.quality;
    if (known.isReservation && data.cause === 'release') row.state = 'released';
    this.note(known.revision, known.chargeRevision, known.isReservation, event, known.cell);
    this.days.add(known.cell, {
      charged: parseMoney(data.cost) - parseMoney(data.previousCost),
      unpriced: (data.unpriced ? 1 : 0) - (known.unpriced ? 1 : 0),
      usage: data.usage,
      formerUsage: known.usage,
    });
  }

  /** An alert about a reservation or charge belongs to its history. */
  private alerted({ data, revision }: Recorded<AlertRaised>): void {
    const keys = new Set<number>();
    if (data.reservationId !== undefined) keys.add(revisionOfId(data.reservationId));
    const charge = data.chargeId === undefined ? undefined : this.charges.get(revisionOfId(data.chargeId));
    if (charge) keys.add(charge.revision);
    for (const key of keys) this.touch(key, revision);
  }

  /** The row to change: one of this batch, or what changes in an earlier one. */
  private touch(key: number, revision: number): AttemptRow | AttemptPatch {
    let row: AttemptRow | AttemptPatch | undefined = this.inserted.get(key) ?? this.patched.get(key);
    if (!row) {
      const patch: AttemptPatch = { revision: key, revisions: [] };
      this.patched.set(key, patch);
      row = patch;
    }
    row.revisions.push(revision);
    return row;
  }

  private note(
    revision: number,
    chargeRevision: number,
    isReservation: boolean,
    { data }: UsageCharged | ChargeCorrected,
    cell: Cell,
  ): void {
    const unpriced = data.unpriced === true;
    this.charges.set(chargeRevision, {
      revision,
      chargeRevision,
      isReservation,
      usage: data.usage,
      unpriced,
      cell,
    });
  }

  private estimatesOf(requestId: string, attempt: number): number[] {
    const found = this.estimates.filter(([id, number]) => id === requestId && number === attempt);
    // A check's events follow each other: whatever else is open will never be claimed.
    this.estimates = [];
    return found.map(([, , revision]) => revision);
  }

  private about(data: AttemptData & { requestId?: string; attempt?: number }, countedAt: string) {
    return {
      request_id: data.requestId,
      attempt: data.attempt,
      provider: data.account.provider,
      account: data.account.fingerprint,
      model: data.model,
      model_id: data.modelId,
      workload: data.workload,
      subject: data.subject,
      conversation: data.conversation,
      tags: data.tags,
      job: data.job,
      service_tier: data.serviceTier,
      counted_at: countedAt,
      day: dayOf(this.timezone, toMs(countedAt)),
    };
  }
}

function cellOf(
  row: Pick<AttemptRow, 'day' | 'provider' | 'account' | 'model' | 'model_id' | 'workload'>,
): Cell {
  const { day, provider, account, workload } = row;
  return { day, provider, account, model: row.model_id ?? row.model, workload: workload ?? '' };
}

function unknownType(event: never): UnknownEventTypeError {
  const { type, revision } = event as Recorded;
  return new UnknownEventTypeError(type, revision);
}

/** The charges, by revision in their ids, that a fold of these events must know beforehand. */
export function chargesNamed(events: readonly Recorded[]): number[] {
  const named = new Set<number>();
  const first = events[0]?.revision ?? 0;
  for (const event of events) {
    const id =
      event.type === 'ChargeCorrected' || event.type === 'AlertRaised' ? event.data.chargeId : undefined;
    const revision = id === undefined ? undefined : revisionOfId(id);
    if (revision !== undefined && revision < first) named.add(revision);
  }
  return [...named].sort((a, b) => a - b);
}
