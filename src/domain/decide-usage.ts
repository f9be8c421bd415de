import { thresholdAlerts } from './alerts';
import { acceptedWith } from './accepted';
import { accountData, attemptData } from './attempt-data';
import type { RecordUsage } from './commands';
import type { Context, Decision } from './decision';
import type {
  AlertRaised,
  ChargeCorrected,
  ChargeFigures,
  LedgerEvent,
  Quality,
  UsageCharged,
} from './events';
import { expiry } from './expiry';
import { figuresOf } from './figures';
import type { Expectation, Figures } from './figures';
import { chargeId } from './identifiers';
import { ZERO, atLeastZero, formatMoney } from './money';
import type { Money } from './money';
import { placesOf, toBudgetPlace } from './places';
import type { AttemptRecord, ChargeState, LedgerState, ReservationState } from './state';
import { toTime } from './windows';

const HOURS_BACK_MS = 24 * 3_600_000;
const AHEAD_MS = 5 * 60_000;
const RANK: Record<Quality, number> = { assumed: 0, unconfirmed: 1, confirmed: 2 };

/** RULES 4 and 5: books what was really spent, in full, in the windows of the moment it was reserved. */
export function decideUsage(command: RecordUsage, state: LedgerState, context: Context): Decision {
  if (!('reservationId' in command.of)) return unreserved(command, command.of, state, context);
  const { reservationId } = command.of;
  const reservation = state.reservations.get(reservationId);
  if (!reservation) {
    return {
      kind: 'rejected',
      rejection: { code: 'reservation_not_found', detail: `no reservation ${reservationId}` },
    };
  }
  for (const id of reservation.chargeIds) {
    const repeated = state.charges.get(id)?.bodies.find((body) => body.hash === command.bodyHash);
    if (repeated) return { kind: 'replay', revision: repeated.revision };
  }
  const expected: Expectation = {
    of: reservation.of,
    usage: reservation.usage,
    amount: reservation.amount,
    maxOutputTokens: reservation.maxOutputTokens,
    priceId: reservation.priceId,
    pricedAtMs: reservation.reservedAtMs,
  };
  const figures = figuresOf(command, expected, state, context);
  const target = chargeMeant(command, reservation, state);
  if (target === 'another send') return duplicateSend(command, reservation, figures, state, context);
  if (target) return better(command, target, figures, late(reservation), [], state, context);
  return settle(command, reservation, figures, state, context);
}

const late = (reservation: ReservationState): boolean =>
  reservation.status === 'released' || reservation.status === 'expired-released';

/** Which charge of a reservation a record speaks of: another provider request id is another paid call. */
function chargeMeant(
  command: RecordUsage,
  reservation: ReservationState,
  state: LedgerState,
): ChargeState | 'another send' | undefined {
  const charges = reservation.chargeIds
    .map((id) => state.charges.get(id))
    .filter((charge) => charge !== undefined);
  const first = charges[0];
  const sent = command.providerRequestId;
  if (!first || sent === undefined) return first;
  const same = charges.find((charge) => charge.providerRequestId === sent);
  if (same) return same;
  return first.providerRequestId === undefined ? first : 'another send';
}

/** The first word about a reservation: what is due happens first, then the charge takes the hold's place. */
function settle(
  command: RecordUsage,
  reservation: ReservationState,
  figures: Figures,
  state: LedgerState,
  context: Context,
): Decision {
  const due = !reservation.settled && reservation.expiresAtMs <= context.nowMs;
  const first = due
    ? expiry(reservation, state, state.revision + 1, context)
    : { events: [], assumed: undefined };
  if (first.assumed) return better(command, first.assumed, figures, false, first.events, state, context);
  const isLate = due || late(reservation);
  const before = [...first.events, ...listing(figures, state)];
  const revision = state.revision + 1 + before.length;
  const event = charged(command, figures, revision, context, {
    of: reservation.of,
    reservation,
    reserved: reservation.amount,
    held: isLate ? ZERO : reservation.amount,
    countedAtMs: reservation.reservedAtMs,
    countedRevision: reservation.revision,
    late: isLate,
    state,
  });
  const places = placesOf(state, reservation.of, reservation.reservedAtMs, reservation.revision);
  const change = figures.cost - (isLate ? 0n : reservation.amount);
  const alerts = [
    ...thresholdAlerts(places, change, context.nowMs),
    ...alertsFor(figures, event.data.chargeId),
  ];
  return acceptedWith([...before, event, ...alerts], before.length, state);
}

/** A second paid call on one reservation, from a retry nobody saw: booked in full, beyond any hold. */
function duplicateSend(
  command: RecordUsage,
  reservation: ReservationState,
  figures: Figures,
  state: LedgerState,
  context: Context,
): Decision {
  const listed = listing(figures, state);
  const revision = state.revision + 1 + listed.length;
  const event = charged(command, figures, revision, context, {
    of: reservation.of,
    reservation,
    reserved: ZERO,
    held: ZERO,
    countedAtMs: reservation.reservedAtMs,
    countedRevision: reservation.revision,
    late: false,
    duplicateSend: true,
    state,
  });
  const places = placesOf(state, reservation.of, reservation.reservedAtMs, reservation.revision);
  const alert: AlertRaised = {
    type: 'AlertRaised',
    data: {
      kind: 'duplicate_send',
      key: `duplicate_send:${event.data.chargeId}`,
      detail: `reservation ${reservation.id} was paid for twice: two provider request ids report usage`,
      chargeId: event.data.chargeId,
      reservationId: reservation.id,
    },
  };
  const alerts = [
    alert,
    ...thresholdAlerts(places, figures.cost, context.nowMs),
    ...alertsFor(figures, event.data.chargeId),
  ];
  return acceptedWith([...listed, event, ...alerts], listed.length, state);
}

/** Better usage replaces worse; equal or worse with another body is a conflict (RULES 4). */
function better(
  command: RecordUsage,
  charge: ChargeState,
  figures: Figures,
  isLate: boolean,
  before: readonly LedgerEvent[],
  state: LedgerState,
  context: Context,
): Decision {
  if (RANK[figures.quality] <= RANK[charge.quality]) {
    const detail = `charge ${charge.id} is ${charge.quality} already, and this record says something else of the same call`;
    return { kind: 'rejected', rejection: { code: 'idempotency_conflict', detail } };
  }
  const places = placesOf(state, charge.of, charge.countedAtMs, charge.countedRevision);
  const event: ChargeCorrected = {
    type: 'ChargeCorrected',
    data: {
      ...attemptData(charge.of),
      ...chargeFigures(command, figures, charge.reserved, charge.reserved, isLate),
      chargeId: charge.id,
      reservationId: charge.reservationId,
      usageId: charge.usageId,
      bodyHash: command.bodyHash,
      previousCost: formatMoney(charge.cost),
      cause: 'usage',
      countedAt: toTime(charge.countedAtMs),
      budgets: places.map(toBudgetPlace),
    },
  };
  const change = figures.cost - charge.cost;
  const alerts = [...thresholdAlerts(places, change, context.nowMs), ...alertsFor(figures, charge.id)];
  const first = [...before, ...listing(figures, state)];
  return acceptedWith([...first, event, ...alerts], first.length, state);
}

type Unreserved = Extract<RecordUsage['of'], { usageId: string }>;

/** Usage nobody reserved: booked all the same, in the windows of when it happened. */
function unreserved(command: RecordUsage, of: Unreserved, state: LedgerState, context: Context): Decision {
  const knownId = state.usages.get(of.usageId);
  const known = knownId === undefined ? undefined : state.charges.get(knownId);
  const repeated = known?.bodies.find((body) => body.hash === command.bodyHash);
  if (repeated) return { kind: 'replay', revision: repeated.revision };
  const faults = faultsOf(command, of, context);
  if (faults.length > 0) {
    return { kind: 'rejected', rejection: { code: 'invalid', detail: 'the usage cannot be booked', faults } };
  }
  const countedAtMs = of.occurredAtMs ?? context.nowMs;
  const record: AttemptRecord = {
    ...of.attempt,
    modelId: context.catalogue(of.attempt.account.provider, of.attempt.model, countedAtMs)?.price.model,
    requestId: of.requestId,
    attempt: of.attemptNumber,
    job: of.job,
  };
  const expected: Expectation = {
    of: record,
    usage: {},
    amount: ZERO,
    maxOutputTokens: undefined,
    priceId: undefined,
    pricedAtMs: countedAtMs,
  };
  const figures = figuresOf(command, expected, state, context);
  if (known) return better(command, known, figures, false, [], state, context);
  const listed = listing(figures, state);
  const revision = state.revision + 1 + listed.length;
  const event = charged(command, figures, revision, context, {
    of: record,
    reserved: ZERO,
    held: ZERO,
    countedAtMs,
    countedRevision: revision,
    late: false,
    usageId: of.usageId,
    state,
  });
  const places = placesOf(state, record, countedAtMs, revision);
  const alerts = [
    ...thresholdAlerts(places, figures.cost, context.nowMs),
    ...alertsFor(figures, event.data.chargeId),
  ];
  return acceptedWith([...listed, event, ...alerts], listed.length, state);
}

function faultsOf(command: RecordUsage, of: Unreserved, { nowMs }: Context) {
  const faults: { path: string; message: string }[] = [];
  const at = of.occurredAtMs;
  if (at !== undefined && at < nowMs - HOURS_BACK_MS) {
    faults.push({ path: 'occurredAt', message: 'is more than 24 hours back' });
  }
  if (at !== undefined && at > nowMs + AHEAD_MS) {
    faults.push({ path: 'occurredAt', message: 'is more than 5 minutes ahead' });
  }
  if (
    !command.usage &&
    command.reportedCost === undefined &&
    !(command.error && command.error.status >= 400)
  ) {
    const message = 'usage without a reservation needs usage, a reported cost, or an error with its status';
    faults.push({ path: 'usage', message });
  }
  return faults;
}

interface Booking {
  readonly of: AttemptRecord;
  readonly reservation?: ReservationState;
  readonly usageId?: string;
  readonly reserved: Money;
  /** The hold it takes the place of. */
  readonly held: Money;
  readonly countedAtMs: number;
  readonly countedRevision: number;
  readonly late: boolean;
  readonly duplicateSend?: true;
  readonly state: LedgerState;
}

function charged(
  command: RecordUsage,
  figures: Figures,
  revision: number,
  context: Context,
  booking: Booking,
): UsageCharged {
  const { of, reservation, countedAtMs, countedRevision, state } = booking;
  const told = chargeFigures(command, figures, booking.reserved, booking.held, booking.late);
  return {
    type: 'UsageCharged',
    data: {
      account: accountData(of.account),
      attempt: of.attempt,
      bodyHash: command.bodyHash,
      budgets: placesOf(state, of, countedAtMs, countedRevision).map(toBudgetPlace),
      chargeId: chargeId(revision, context.nonce),
      conversation: of.conversation,
      cost: told.cost,
      countedAt: toTime(countedAtMs),
      duplicateSend: booking.duplicateSend,
      error: told.error,
      job: of.job,
      late: told.late,
      model: of.model,
      modelId: of.modelId,
      outcome: told.outcome,
      overrun: told.overrun,
      ownCost: told.ownCost,
      priceId: told.priceId,
      providerRequestId: told.providerRequestId,
      quality: told.quality,
      released: told.released,
      reportedCost: told.reportedCost,
      requestId: of.requestId,
      reservationId: reservation?.id,
      reserved: reservation ? formatMoney(reservation.amount) : undefined,
      servedModel: told.servedModel,
      servedTier: told.servedTier,
      serviceTier: of.serviceTier,
      subject: of.subject,
      tags: of.tags,
      unpriced: told.unpriced,
      upstreamCost: told.upstreamCost,
      usage: told.usage,
      usageId: booking.usageId,
      workload: of.workload,
    },
  };
}

/** `released` is what the hold had too much, `overrun` what was spent beyond what was reserved. */
function chargeFigures(
  command: RecordUsage,
  figures: Figures,
  reserved: Money,
  held: Money,
  isLate: boolean,
): ChargeFigures {
  const { cost } = figures;
  const both = figures.reportedWins || command.reportedCost !== undefined;
  return {
    cost: formatMoney(cost),
    quality: figures.quality,
    usage: figures.usage,
    outcome: command.outcome,
    servedModel: command.servedModel,
    servedTier: command.servedTier,
    priceId: figures.price?.priceId,
    ownCost: both && figures.ownCost !== undefined ? formatMoney(figures.ownCost) : undefined,
    reportedCost: command.reportedCost,
    upstreamCost: command.upstreamCost,
    providerRequestId: command.providerRequestId,
    unpriced: figures.unpriced ? true : undefined,
    error: figures.error,
    released: isLate ? '0' : formatMoney(atLeastZero(held - cost)),
    overrun: formatMoney(atLeastZero(cost - reserved)),
    late: isLate ? true : undefined,
  };
}

/** A catalogue price that no check has listed yet. */
function listing({ price }: Figures, state: LedgerState): LedgerEvent[] {
  if (price?.source !== 'catalogue' || state.prices.has(price.priceId)) return [];
  return [{ type: 'PriceListed', data: { price } }];
}

function alertsFor(figures: Figures, id: string): AlertRaised[] {
  const alerts: AlertRaised[] = [];
  const raise = (kind: 'unpriced_usage' | 'cost_mismatch', detail: string) =>
    alerts.push({ type: 'AlertRaised', data: { kind, key: `${kind}:${id}`, detail, chargeId: id } });
  if (figures.unpriced)
    raise('unpriced_usage', `charge ${id} has usage without a price: set one and it is corrected`);
  if (figures.mismatch) {
    const own = figures.ownCost === undefined ? 'unknown' : formatMoney(figures.ownCost);
    raise(
      'cost_mismatch',
      `the provider's figure for charge ${id} and ours (${own} USD) differ by more than 20 %`,
    );
  }
  return alerts;
}
