import { createHash } from 'node:crypto';
import type { Attempt } from '../domain/attempt';
import { canonicalJson } from '../domain/canonical-json';
import type { Candidate, CheckBudget, RecordUsage, ReportedError } from '../domain/commands';
import { beginsLikeKey } from '../domain/key-prefix';
import { decimalUsd, normaliseUsage } from '../domain/provider-usage';
import type { NormalisedUsage } from '../domain/provider-usage';
import { invalidRequest } from './problems/problem';
import type { CheckBudgetBody } from '../schemas/check';
import type { RecordUsageBody } from '../schemas/usage';

/** What tells a repeat from a conflict: the body as it was understood, defaults filled in, whatever its order. */
export const bodyHashOf = (body: unknown): string =>
  createHash('sha256').update(canonicalJson(body)).digest('hex').slice(0, 32);

export function toCheckBudget(body: CheckBudgetBody): CheckBudget {
  const candidates: Candidate[] = [{ account: body.account, model: body.model, estimate: body.estimate }];
  for (const { account, model, estimate } of body.fallbacks ?? []) {
    candidates.push({ account, model, estimate: estimate ?? body.estimate });
  }
  return {
    type: 'CheckBudget',
    requestId: body.requestId,
    attempt: body.attempt,
    candidates,
    workload: body.workload,
    subject: body.subject,
    conversation: body.conversation,
    tags: body.tags,
    job: body.job,
    serviceTier: body.serviceTier,
    reserve: body.reserve,
    ttlSeconds: body.ttlSeconds,
    bodyHash: bodyHashOf(body),
  };
}

/** Throws a 400 where the provider's usage object cannot be read. */
export function toRecordUsage(body: RecordUsageBody, provider = body.account?.provider): RecordUsage {
  const told = body.providerUsage && normaliseUsage(provider, body.providerUsage);
  if (told && told.faults.length > 0) {
    throw invalidRequest(
      told.faults.map(({ path, message }) => ({
        path: path === '' ? 'providerUsage' : `providerUsage.${path}`,
        message,
      })),
    );
  }
  const usage = body.usage ?? told?.usage;
  const reserved = body.reservationId !== undefined;
  const tier = body.serviceTier ?? told?.serviceTier;
  return {
    type: 'RecordUsage',
    of: reserved ? { reservationId: body.reservationId ?? '' } : unreserved(body, tier),
    servedModel: reserved ? body.model : undefined,
    servedTier: tier,
    providerRequestId: body.providerRequestId,
    outcome: body.outcome,
    usage,
    partial: usage !== undefined && body.outcome === 'aborted' && body.usageFinal !== true,
    ...costs(body, told),
    error: body.error && errorOf(body.error),
    bodyHash: bodyHashOf(body),
  };
}

function unreserved(body: RecordUsageBody, tier: string | undefined): RecordUsage['of'] {
  if (!body.account || body.model === undefined || body.usageId === undefined)
    throw new TypeError('not validated');
  const attempt: Attempt & { serviceTier?: string } = {
    account: body.account,
    model: body.model,
    workload: body.workload,
    subject: body.subject,
    conversation: body.conversation,
    tags: body.tags,
    serviceTier: tier,
  };
  return {
    usageId: body.usageId,
    attempt,
    requestId: body.requestId,
    attemptNumber: body.attempt,
    job: body.job,
    occurredAtMs: body.occurredAt === undefined ? undefined : Date.parse(body.occurredAt),
  };
}

function costs(
  body: RecordUsageBody,
  told: NormalisedUsage | undefined,
): Pick<RecordUsage, 'reportedCost' | 'upstreamCost'> {
  const { reportedCost } = body;
  if (typeof reportedCost === 'number') return { reportedCost: decimalUsd(reportedCost, 0) };
  if (reportedCost !== undefined) return { reportedCost };
  return { reportedCost: told?.reportedCost, upstreamCost: told?.upstreamCost };
}

/** Of a provider's error its status, type and code: its text is never kept (DESIGN 4). */
function errorOf(error: NonNullable<RecordUsageBody['error']>): ReportedError {
  const inner = innerError(error['body']) ?? innerError(error);
  return {
    status: error.status,
    type: word(error.type) ?? word(inner?.['type']),
    code: word(error.code) ?? word(inner?.['code']),
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** The provider's own error object, in the places where SDKs have it: parsed, as text, `error`, `error.error`. */
function innerError(value: unknown, depth = 0): Fields | undefined {
  if (depth > 3) return undefined;
  if (typeof value === 'string') {
    try {
      return innerError(JSON.parse(value), depth + 1);
    } catch {
      return undefined;
    }
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = value as Fields;
  return innerError(fields['error'], depth + 1) ?? fields;
}

const WORD = /^[\w.-]{1,100}$/;
const KEY_LIKE = /^key[-_]|[A-Za-z0-9]{32,}/i;

const word = (value: unknown): string | undefined => {
  const text = typeof value === 'number' ? String(value) : value;
  // A type or code is made of words; what looks like a key is one, pasted in the wrong place.
  return typeof text === 'string' && WORD.test(text) && !beginsLikeKey(text) && !KEY_LIKE.test(text)
    ? text
    : undefined;
};
