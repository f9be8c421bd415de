import type { BudgetBalance } from '../domain/budget';
import type { Answer, CheckAllowed, CheckRefused } from '../domain/answers';
import type { Rejection, RejectionCode } from '../domain/rejections';
import type { CommandOutcome } from '../writer/submission';
import { LogUnavailableError, OverloadedError } from '../writer/submission';
import { Problem } from './problems/problem';

export interface HttpAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The one table from the domain's rejections to statuses. */
const STATUS: Readonly<Record<RejectionCode, number>> = {
  idempotency_conflict: 409,
  reservation_ended: 409,
  timezone_fixed: 409,
  history_too_long: 409,
  reservation_not_found: 404,
  charge_not_found: 404,
  budget_not_found: 404,
  price_not_found: 404,
  ledger_not_found: 404,
  ledger_not_open: 404,
  clock_skew: 503,
  invalid: 400,
};

/** What was named may be anything, a pasted key too: it is not said back. */
const NOT_FOUND: Partial<Record<RejectionCode, string>> = {
  reservation_not_found: 'no such reservation',
  charge_not_found: 'no such charge',
  budget_not_found: 'no such budget',
  price_not_found: 'no price is set under that name; the catalogue’s own cannot be retired',
  ledger_not_found: 'no such ledger',
  ledger_not_open: 'no such ledger',
};

export function problemOf(rejection: Rejection): Problem {
  const { code, detail: told, ...members } = rejection;
  const detail = NOT_FOUND[code] ?? told;
  if (rejection.code === 'clock_skew') {
    const headers = { 'retry-after': String(Math.ceil(rejection.retryAfterSeconds)) };
    return new Problem(STATUS[code], code, detail, { ...members, outcome: 'none' }, headers);
  }
  return new Problem(STATUS[code], code === 'invalid' ? 'invalid_request' : code, detail, members);
}

/** 503 for a log that cannot be written; undefined for any other error. */
export function unavailable(error: unknown): Problem | undefined {
  if (error instanceof LogUnavailableError) {
    const headers = { 'retry-after': String(Math.ceil(error.retryAfterSeconds)) };
    return new Problem(503, 'log_unavailable', error.message, { outcome: error.outcome }, headers);
  }
  if (error instanceof OverloadedError) {
    const headers = { 'retry-after': String(Math.ceil(error.retryAfterSeconds)) };
    return new Problem(503, 'overloaded', error.message, { outcome: 'none' }, headers);
  }
  return undefined;
}

const REPLAYED = { 'idempotent-replayed': 'true' };

/** What a command's outcome is told as. Throws the Problem of a refusal or rejection. */
export function toHttp(outcome: CommandOutcome): HttpAnswer {
  if (outcome.kind === 'rejected') throw problemOf(outcome.rejection);
  const headers = outcome.replayed ? REPLAYED : undefined;
  const { answer } = outcome;
  if (answer.kind === 'check-refused' && !answer.advisory) throw refusal(answer, headers ?? {});
  const status = answer.kind === 'settings' && answer.opened ? 201 : 200;
  return { status, body: bodyOf(answer), headers };
}

/** A refused check: 402, which SDKs do not retry by themselves. */
function refusal(answer: CheckRefused, headers: Readonly<Record<string, string>>): Problem {
  const { requestId, attempt, code, reasons, estimate, retryAt, nextAttempt, position } = answer;
  const named = [...new Set(reasons.map(({ budget }) => budget).filter((id) => id !== undefined))];
  const by = named.length > 0 ? ` by ${named.join(', ')}` : '';
  const detail = `refused${by}: ${code.replaceAll('_', ' ')}`;
  return new Problem(
    402,
    code,
    detail,
    { requestId, attempt, reasons, estimate, retryAt, nextAttempt, position },
    headers,
  );
}

function bodyOf(answer: Answer): unknown {
  switch (answer.kind) {
    case 'check-allowed':
      return allowed(answer);
    case 'check-refused':
      return { ...withoutKind(answer), advisory: undefined, decision: 'refused' };
    case 'budget':
      return { ...answer.budget, generation: answer.generation, position: answer.position };
    case 'price':
      return { ...answer.price, position: answer.position };
    case 'settings':
      return { ...answer.settings, position: answer.position };
    default:
      return withoutKind(answer);
  }
}

/** `setAside` is an amount in reasons; in balances the place's index goes by a name of its own. */
const balanceOf = ({ setAside, ...balance }: BudgetBalance) => ({ ...balance, setAsideIndex: setAside });

function allowed(answer: CheckAllowed): unknown {
  const { requestId, attempt, account, model, fallbackFrom, reservation, estimate } = answer;
  const budgets = answer.budgets.map(balanceOf);
  const { skipped, warnings, wouldRefuse, unbudgeted, position } = answer;
  const decision = 'allowed';
  // prettier-ignore
  return { decision, requestId, attempt, account, model, fallbackFrom, reservation, estimate, budgets, skipped, warnings, wouldRefuse, unbudgeted, position };
}

function withoutKind({ kind: _, ...rest }: Answer): Record<string, unknown> {
  return rest;
}
