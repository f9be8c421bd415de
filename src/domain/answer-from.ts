import type { Answer, UsageRecorded } from './answers';
import type {
  ChargeCorrected,
  LedgerEvent,
  ReservationExpired,
  ReservationReleased,
  SpendRefused,
  SpendReserved,
  UsageCharged,
} from './events';
import type { Usage } from './usage';

/** Input of every class, as one figure for people. */
export function inputOf(usage: Usage): number {
  return (
    (usage.inputTokens ?? 0) +
    (usage.cacheReadTokens ?? 0) +
    (usage.cacheWrite5mTokens ?? 0) +
    (usage.cacheWrite1hTokens ?? 0) +
    (usage.audioInputTokens ?? 0)
  );
}

export const outputOf = (usage: Usage): number => (usage.outputTokens ?? 0) + (usage.audioOutputTokens ?? 0);

/**
 * The answer an event gave. First answers and replays are made by this one function, so that a repeat is told
 * the same, however much later. Throws a TypeError on events that answer no command with an identity.
 */
export function answerFrom(event: LedgerEvent & { readonly revision: number }): Answer {
  switch (event.type) {
    case 'SpendReserved':
      return allowed(event, event.revision);
    case 'SpendRefused':
      return refused(event, event.revision);
    case 'UsageCharged':
      return usageRecorded(event, event.revision);
    case 'ChargeCorrected':
      return corrected(event, event.revision);
    case 'ReservationReleased':
    case 'ReservationExpired':
      return released(event, event.revision);
    default:
      throw new TypeError(`${event.type} answers no command`);
  }
}

function allowed({ data }: SpendReserved, position: number): Answer {
  return {
    kind: 'check-allowed',
    requestId: data.requestId,
    attempt: data.attempt,
    account: data.account,
    model: data.model,
    fallbackFrom: data.fallbackFrom,
    reservation: { id: data.reservationId, amount: data.amount, expiresAt: data.expiresAt },
    estimate: { inputTokens: inputOf(data.usage), outputTokens: outputOf(data.usage), amount: data.amount },
    budgets: data.budgets,
    skipped: data.skipped,
    warnings: data.warnings,
    wouldRefuse: data.wouldRefuse,
    unbudgeted: data.unbudgeted,
    position,
  };
}

function refused({ data }: SpendRefused, position: number): Answer {
  return {
    kind: 'check-refused',
    advisory: false,
    requestId: data.requestId,
    attempt: data.attempt,
    code: data.code,
    reasons: data.reasons,
    estimate: { inputTokens: inputOf(data.usage), outputTokens: outputOf(data.usage), amount: data.amount },
    retryAt: data.retryAt,
    nextAttempt: data.nextAttempt,
    position,
  };
}

function usageRecorded({ data }: UsageCharged | ChargeCorrected, position: number): UsageRecorded {
  return {
    kind: 'usage-recorded',
    chargeId: data.chargeId,
    charged: data.cost,
    released: data.released,
    overrun: data.overrun,
    quality: data.quality,
    late: data.late,
    unpriced: data.unpriced,
    position,
  };
}

function corrected(event: ChargeCorrected, position: number): Answer {
  const { data } = event;
  if (data.cause === 'usage') return usageRecorded(event, position);
  if (data.cause === 'release') {
    const reservationId = data.reservationId ?? '';
    return { kind: 'reservation-released', reservationId, released: data.released, position };
  }
  return {
    kind: 'charge-corrected',
    chargeId: data.chargeId,
    charged: data.cost,
    previous: data.previousCost,
    position,
  };
}

function released({ data }: ReservationReleased | ReservationExpired, position: number): Answer {
  return { kind: 'reservation-released', reservationId: data.reservationId, released: data.amount, position };
}
