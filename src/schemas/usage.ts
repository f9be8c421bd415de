import { z } from 'zod';
import { formatMoney, parseMoney } from '../domain/money';
import { USAGE_CLASSES } from '../domain/usage';
import type { UsageClass } from '../domain/usage';
import {
  account,
  amount,
  count,
  identifier,
  label,
  reason,
  reportedCost,
  tags,
  time,
  ttlSeconds,
} from './primitives';

const counts = Object.fromEntries(USAGE_CLASSES.map((name) => [name, count.optional()])) as Record<
  UsageClass,
  z.ZodOptional<typeof count>
>;
export const usage = z.strictObject(counts).meta({ id: 'Usage' });

const DEEPEST = 32;
/** What is nested deeper no provider sends, and no recursion over it should have to survive. */
function isShallow(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth < DEEPEST && Object.values(value).every((inner) => isShallow(inner, depth + 1));
}
const tooDeep = `is nested more than ${DEEPEST} deep`;

/** A provider's error as the caller's SDK has it. Only status, type and code are kept. */
const providerError = z
  .looseObject({
    status: z.number().int('is not a whole number').min(0, 'is negative').max(999, 'is above 999'),
    type: z.unknown().optional(),
    code: z.unknown().optional(),
    message: z.unknown().optional(),
    metadata: z.unknown().optional(),
    body: z.unknown().optional(),
  })
  .refine((value) => isShallow(value), tooDeep)
  .meta({ id: 'ProviderError' });

const fields = z.strictObject({
  reservationId: identifier.optional(),
  usageId: identifier.optional(),
  account: account.optional(),
  model: label.optional(),
  requestId: identifier.optional(),
  attempt: z
    .number()
    .int('is not a whole number')
    .min(1, 'is below 1')
    .max(1_000_000, 'is above 1000000')
    .optional(),
  workload: label.optional(),
  subject: label.optional(),
  conversation: label.optional(),
  tags: tags.optional(),
  job: identifier.optional(),
  serviceTier: label.optional(),
  providerRequestId: identifier.optional(),
  outcome: z.enum(['succeeded', 'failed', 'aborted']),
  usage: usage.optional(),
  providerUsage: z
    .record(z.string(), z.unknown())
    .refine((value) => isShallow(value), tooDeep)
    .optional(),
  /** The usage of an aborted call is the provider's final figure all the same. */
  usageFinal: z.boolean().optional(),
  reportedCost: reportedCost.optional(),
  error: providerError.optional(),
  occurredAt: time.optional(),
});

/** Fields that say which attempt it was: a reservation knows them already. */
const OF_UNRESERVED = [
  'account',
  'requestId',
  'attempt',
  'workload',
  'subject',
  'conversation',
  'tags',
  'job',
  'occurredAt',
] as const;

/** The body of POST /record-usage. */
export const recordUsage = fields
  .superRefine((value, context) => {
    const fault = (path: string, message: string) => {
      context.addIssue({ code: 'custom', path: [path], message });
    };
    const reserved = value.reservationId !== undefined;
    if (reserved === (value.usageId !== undefined))
      fault('reservationId', 'exactly one of reservationId and usageId is needed');
    if (value.usage && value.providerUsage)
      fault('providerUsage', 'usage and providerUsage exclude each other');
    if (!reserved && !value.account) fault('account', 'is needed without a reservation');
    if (!reserved && value.model === undefined) fault('model', 'is needed without a reservation');
    if (!reserved) return;
    for (const name of OF_UNRESERVED) {
      if (value[name] !== undefined) fault(name, 'belongs to usage without a reservation');
    }
  })
  .meta({ id: 'RecordUsage' });
export type RecordUsageBody = z.output<typeof recordUsage>;

export const extend = z.strictObject({ ttlSeconds }).meta({ id: 'ExtendReservation' });
export const nothing = z.strictObject({}).nullish();
export const correction = z
  .strictObject({
    correctionId: identifier,
    amount: amount.transform((text) => formatMoney(parseMoney(text))),
    reason,
  })
  .meta({ id: 'CorrectCharge' });
