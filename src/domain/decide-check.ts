import { bucketsFullAlert, thresholdAlerts } from './alerts';
import { answerFrom, inputOf, outputOf } from './answer-from';
import { accountData } from './attempt-data';
import type { CheckBudget } from './commands';
import type { Context, Decision } from './decision';
import { balance, evaluate } from './evaluate';
import type { Evaluation } from './evaluate';
import type { LedgerEvent, Reason, SpendEstimated, SpendRefused, SpendReserved } from './events';
import { reservationId } from './identifiers';
import { ZERO, formatMoney } from './money';
import { checkKey } from './state';
import type { CheckRecord, LedgerState } from './state';
import { toMs, toTime } from './windows';

/** RULES 2: everything must agree; the money is held everywhere at once or nowhere. */
export function decideCheck(command: CheckBudget, state: LedgerState, context: Context): Decision {
  if (command.reserve) {
    const known = state.checks.get(checkKey(command.requestId, command.attempt));
    if (known) return repeat(command, known, state, context);
  }
  const evaluations: Evaluation[] = [];
  let chosen: Evaluation | undefined;
  for (let i = 0; i < command.candidates.length && !chosen; i += 1) {
    const evaluation = evaluate(state, command, i, context, context.nowMs);
    evaluations.push(evaluation);
    if (evaluation.reasons.length === 0) chosen = evaluation;
    // In the shadow nothing is refused, and nothing is sent elsewhere either.
    else if (i === 0 && observes(state, command)) chosen = evaluation;
  }
  const events = estimated(command, evaluations, state);
  if (!command.reserve) return advise(command, evaluations, chosen, events, state, context);
  return chosen
    ? reserve(command, chosen, evaluations, events, state, context)
    : refuse(command, evaluations, events, state, context);
}

function observes(state: LedgerState, command: CheckBudget): boolean {
  const { settings } = state;
  const own = command.workload === undefined ? undefined : settings.workloads[command.workload];
  return (own?.enforcement ?? settings.enforcement) === 'observe';
}

/** RULES 2.1: the same body gets its answer again, but "allowed" only while the money is still held. */
function repeat(command: CheckBudget, known: CheckRecord, state: LedgerState, context: Context): Decision {
  const nextAttempt = nextAttemptOf(command, state);
  if (known.bodyHash !== command.bodyHash) {
    const detail = `request ${command.requestId} attempt ${command.attempt} was checked before with another body`;
    return { kind: 'rejected', rejection: { code: 'idempotency_conflict', detail, nextAttempt } };
  }
  const reservation =
    known.reservationId === undefined ? undefined : state.reservations.get(known.reservationId);
  if (!reservation) return { kind: 'replay', revision: known.revision };
  const due = reservation.status === 'held' && reservation.expiresAtMs <= context.nowMs;
  if (reservation.status === 'held' && !due) return { kind: 'replay', revision: known.revision };
  const name = due
    ? reservation.onExpiry === 'release'
      ? 'expired-released'
      : 'assumed'
    : reservation.status;
  const detail = `the reservation of this check is ${name}: make another attempt`;
  return { kind: 'rejected', rejection: { code: 'reservation_ended', detail, state: name, nextAttempt } };
}

/** The next attempt number nobody has used. */
function nextAttemptOf(command: CheckBudget, state: LedgerState): number {
  let next = command.attempt + 1;
  while (state.checks.has(checkKey(command.requestId, next))) next += 1;
  return next;
}

/** The estimates of all candidates looked at, and the catalogue prices used for the first time. */
function estimated(
  command: CheckBudget,
  evaluations: readonly Evaluation[],
  state: LedgerState,
): LedgerEvent[] {
  const events: LedgerEvent[] = [];
  const listed = new Set<string>();
  for (const { choice } of evaluations) {
    const { price } = choice;
    if (price?.source !== 'catalogue' || state.prices.has(price.priceId) || listed.has(price.priceId))
      continue;
    listed.add(price.priceId);
    events.push({ type: 'PriceListed', data: { price } });
  }
  for (const evaluation of evaluations) events.push(estimateOf(command, evaluation));
  return events;
}

// Events are written field by field in the order of their keys: a literal that begins with a spread is built many
// times slower, and sealing takes what is sorted already as it is.
function estimateOf(
  command: CheckBudget,
  { of, usage, amount, choice, candidate }: Evaluation,
): SpendEstimated {
  return {
    type: 'SpendEstimated',
    data: {
      account: accountData(of.account),
      advisory: command.reserve ? undefined : true,
      amount: amount === undefined ? undefined : formatMoney(amount),
      attempt: command.attempt,
      candidate,
      conversation: of.conversation,
      job: of.job,
      model: of.model,
      modelId: of.modelId,
      priceExact: choice.price ? choice.exact : undefined,
      priceId: choice.price?.priceId,
      requestId: command.requestId,
      serviceTier: of.serviceTier,
      subject: of.subject,
      tags: of.tags,
      usage,
      workload: of.workload,
    },
  };
}

function reserve(
  command: CheckBudget,
  chosen: Evaluation,
  evaluations: readonly Evaluation[],
  events: LedgerEvent[],
  state: LedgerState,
  context: Context,
): Decision {
  const revision = state.revision + 1 + events.length;
  const event = reservation(command, chosen, evaluations, revision, state, context);
  const alerts: LedgerEvent[] = thresholdAlerts(chosen.places, chosen.amount ?? ZERO, context.nowMs);
  const all = [...events, event, ...alerts, ...fullAlerts(evaluations, state, context.nowMs)];
  return { kind: 'accepted', events: all, answer: answerFrom({ ...event, revision }) };
}

function reservation(
  command: CheckBudget,
  chosen: Evaluation,
  evaluations: readonly Evaluation[],
  revision: number,
  state: LedgerState,
  context: Context,
): SpendReserved {
  const amount = chosen.amount ?? ZERO;
  const ttlSeconds = command.ttlSeconds ?? state.settings.reservationTtlSeconds;
  const skipped = skippedFor(evaluations, chosen);
  const { of } = chosen;
  return {
    type: 'SpendReserved',
    data: {
      account: accountData(of.account),
      amount: formatMoney(amount),
      attempt: command.attempt,
      bodyHash: command.bodyHash,
      budgets: chosen.places.map((place) => balance(place, amount)),
      candidate: chosen.candidate,
      conversation: of.conversation,
      expiresAt: toTime(context.nowMs + ttlSeconds * 1000),
      fallbackFrom: fallbackFrom(command, chosen),
      job: of.job,
      maxOutputTokens: command.candidates[chosen.candidate]?.estimate.maxOutputTokens,
      model: of.model,
      modelId: of.modelId,
      onExpiry: state.settings.onExpiry,
      priceId: chosen.choice.price?.priceId,
      requestId: command.requestId,
      reservationId: reservationId(revision, context.nonce),
      serviceTier: of.serviceTier,
      skipped: skipped.length > 0 ? skipped : undefined,
      subject: of.subject,
      tags: of.tags,
      unbudgeted: chosen.budgeted ? undefined : true,
      usage: chosen.usage,
      warnings: chosen.warnings.length > 0 ? chosen.warnings : undefined,
      workload: of.workload,
      wouldRefuse: chosen.reasons.length > 0 ? chosen.reasons : undefined,
    },
  };
}

/** The first candidate, where a later one is sent. */
function fallbackFrom(command: CheckBudget, chosen: Evaluation) {
  const first = command.candidates[0];
  if (chosen.candidate === 0 || !first) return undefined;
  return { account: accountData(first.account), model: first.model };
}

function refuse(
  command: CheckBudget,
  evaluations: readonly Evaluation[],
  events: LedgerEvent[],
  state: LedgerState,
  context: Context,
): Decision {
  const revision = state.revision + 1 + events.length;
  const { code, reasons, first } = verdict(evaluations);
  const { of } = first;
  const event: SpendRefused = {
    type: 'SpendRefused',
    data: {
      account: accountData(of.account),
      amount: first.amount === undefined ? undefined : formatMoney(first.amount),
      attempt: command.attempt,
      bodyHash: command.bodyHash,
      code,
      conversation: of.conversation,
      job: of.job,
      model: of.model,
      modelId: of.modelId,
      nextAttempt: nextAttemptOf(command, state),
      reasons,
      requestId: command.requestId,
      retryAt: retryAt(command, evaluations, state, context),
      serviceTier: of.serviceTier,
      subject: of.subject,
      tags: of.tags,
      usage: first.usage,
      workload: of.workload,
    },
  };
  const all = [...events, event, ...fullAlerts(evaluations, state, context.nowMs)];
  return { kind: 'accepted', events: all, answer: answerFrom({ ...event, revision }) };
}

/** The first candidate's first reason is the code; the reasons are everybody's (RULES 2.2). */
function verdict(evaluations: readonly Evaluation[]) {
  const reasons: Reason[] = evaluations.flatMap((evaluation) => evaluation.reasons);
  const first = evaluations[0];
  const code = first?.reasons[0]?.code;
  if (!first || code === undefined) throw new Error('a refusal without a reason');
  return { code, reasons, first };
}

function fullAlerts(evaluations: readonly Evaluation[], state: LedgerState, atMs: number): LedgerEvent[] {
  const alerts = new Map<string, LedgerEvent>();
  for (const { of, reasons } of evaluations) {
    for (const reason of reasons) {
      if (reason.code !== 'too_many_buckets' || reason.budget === undefined) continue;
      const alert = bucketsFullAlert(state, reason.budget, of, atMs);
      if (alert) alerts.set(alert.data.key, alert);
    }
  }
  return [...alerts.values()];
}

/**
 * When the request would pass were nothing more spent: the earliest, over the candidates, at which all the windows
 * that refuse it have ended and it passes all rules. None where no wait helps (RULES 2).
 */
function retryAt(
  command: CheckBudget,
  evaluations: readonly Evaluation[],
  state: LedgerState,
  context: Context,
): string | undefined {
  let earliest: number | undefined;
  for (const { reasons, candidate } of evaluations) {
    if (!reasons.every((reason) => reason.code === 'budget_exceeded' && reason.resetsAt !== undefined))
      continue;
    const after = Math.max(...reasons.map((reason) => toMs(reason.resetsAt ?? '')));
    if (earliest !== undefined && after >= earliest) continue;
    if (evaluate(state, command, candidate, context, after).reasons.length === 0) earliest = after;
  }
  return earliest === undefined ? undefined : toTime(earliest);
}

/** `reserve: false`: the same judgement, recorded as an estimate only, and always an answer. */
function advise(
  command: CheckBudget,
  evaluations: readonly Evaluation[],
  chosen: Evaluation | undefined,
  events: LedgerEvent[],
  state: LedgerState,
  context: Context,
): Decision {
  const position = state.revision + events.length;
  const about = { requestId: command.requestId, attempt: command.attempt, position };
  if (!chosen) {
    const { code, reasons, first } = verdict(evaluations);
    const answer = {
      kind: 'check-refused' as const,
      advisory: true,
      ...about,
      code,
      reasons,
      estimate: estimateAnswer(first),
    };
    return {
      kind: 'accepted',
      events,
      answer: { ...answer, retryAt: retryAt(command, evaluations, state, context) },
    };
  }
  const skipped = skippedFor(evaluations, chosen);
  return {
    kind: 'accepted',
    events,
    answer: {
      kind: 'check-allowed',
      ...about,
      account: chosen.of.account,
      model: chosen.of.model,
      fallbackFrom: fallbackFrom(command, chosen),
      estimate: estimateAnswer(chosen),
      budgets: chosen.places.map((place) => balance(place, ZERO)),
      skipped: skipped.length > 0 ? skipped : undefined,
      warnings: chosen.warnings.length > 0 ? chosen.warnings : undefined,
      wouldRefuse: chosen.reasons.length > 0 ? chosen.reasons : undefined,
      unbudgeted: chosen.budgeted ? undefined : true,
    },
  };
}

const estimateAnswer = ({ usage, amount }: Evaluation) => ({
  inputTokens: inputOf(usage),
  outputTokens: outputOf(usage),
  amount: amount === undefined ? undefined : formatMoney(amount),
});

/** Why the candidates before the chosen one were skipped. */
const skippedFor = (evaluations: readonly Evaluation[], chosen: Evaluation): Reason[] =>
  evaluations.flatMap((evaluation) => (evaluation === chosen ? [] : evaluation.reasons));
