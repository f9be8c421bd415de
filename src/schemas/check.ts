import { z } from 'zod';
import { account, count, identifier, label, tags, ttlSeconds } from './primitives';

export const estimate = z
  .strictObject({
    inputTokens: count.optional(),
    inputChars: count.optional(),
    maxOutputTokens: count.optional(),
    cacheWrite: z.enum(['5m', '1h']).optional(),
    audioInputTokens: count.optional(),
    audioOutputTokens: count.optional(),
    images: count.optional(),
    audioSeconds: count.optional(),
    searches: count.optional(),
  })
  .meta({ id: 'Estimate' });

const withInput = estimate.refine(
  (value) => value.inputTokens !== undefined || value.inputChars !== undefined,
  'needs inputTokens or inputChars',
);

/** The body of POST /check-budget. */
export const checkBudget = z
  .strictObject({
    requestId: identifier,
    attempt: z
      .number()
      .int('is not a whole number')
      .min(1, 'is below 1')
      .max(1_000_000, 'is above 1000000')
      .default(1),
    account,
    model: label,
    workload: label.optional(),
    subject: label.optional(),
    conversation: label.optional(),
    tags: tags.optional(),
    job: identifier.optional(),
    serviceTier: label.optional(),
    estimate: withInput,
    fallbacks: z
      .array(z.strictObject({ account, model: label, estimate: withInput.optional() }))
      .max(8, 'has more than 8 fallbacks')
      .optional(),
    reserve: z.boolean().default(true),
    ttlSeconds: ttlSeconds.optional(),
  })
  .meta({ id: 'CheckBudget' });

export type CheckBudgetBody = z.output<typeof checkBudget>;
