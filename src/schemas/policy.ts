import { z } from 'zod';
import type { Dimension } from '../domain/attempt';
import { DEFAULT_MAX_BUCKETS, DEFAULT_THRESHOLDS } from '../domain/budget';
import type { BudgetDefinition } from '../domain/budget';
import { TAG_KEY } from '../domain/identifiers';
import { formatMoney, parseMoney } from '../domain/money';
import type { RatesText } from '../domain/prices';
import { validateRates } from '../domain/pricing';
import { amount, count, fingerprint, label, provider, slug, tags, time, ttlSeconds } from './primitives';

export const match = z
  .strictObject({
    provider: provider.optional(),
    account: fingerprint.optional(),
    model: label.optional(),
    workload: label.optional(),
    subject: label.optional(),
    conversation: label.optional(),
    tags: tags.optional(),
  })
  .meta({ id: 'Match' });

const PLAIN = new Set(['provider', 'account', 'model', 'workload', 'subject', 'conversation']);
const isDimension = (name: string): name is Dimension =>
  PLAIN.has(name) || (name.startsWith('tag.') && TAG_KEY.test(name.slice(4)));

const dimension = z
  .string()
  .refine(
    isDimension,
    'is not a dimension (provider, account, model, workload, subject, conversation, tag.<key>)',
  );
const money = amount.transform((value) => (/^\d/.test(value) ? formatMoney(parseMoney(value)) : value));

/** A budget's definition as PUT /budgets/{id} and the policy file have it. */
export const budget = z
  .strictObject({
    id: slug.optional(),
    match: match.default({}),
    each: z.array(dimension).max(4, 'has more than 4 dimensions').default([]),
    window: z.union(
      [z.enum(['day', 'week', 'month', 'lifetime']), z.strictObject({ from: time, to: time })],
      'is neither day, week, month, lifetime nor {from, to}',
    ),
    limit: money,
    setAsides: z
      .array(z.strictObject({ match, amount: money }))
      .max(16, 'has more than 16 set-asides')
      .default([]),
    mode: z.enum(['enforce', 'warn']).default('enforce'),
    thresholds: z
      .array(z.number().gt(0, 'is not above 0').max(10, 'is above 10'))
      .max(16, 'has more than 16 thresholds')
      .optional(),
    maxBuckets: z
      .number()
      .int('is not a whole number')
      .min(1, 'is below 1')
      .max(10_000_000, 'is above 10000000')
      .default(DEFAULT_MAX_BUCKETS),
    countFrom: z.enum(['window', 'now']).default('window'),
  })
  .meta({ id: 'Budget' });
export type BudgetBody = z.output<typeof budget>;

/** With its defaults: thresholds are off with `each` unless asked for. */
export function definitionOf(id: string, body: BudgetBody): BudgetDefinition {
  const each = [...new Set(body.each)].sort();
  const thresholds = body.thresholds ?? (each.length > 0 ? [] : DEFAULT_THRESHOLDS);
  return {
    id,
    match: body.match,
    each,
    window: body.window,
    limit: body.limit,
    setAsides: body.setAsides,
    mode: body.mode,
    thresholds: [...new Set(thresholds)].sort((a, b) => a - b),
    maxBuckets: body.maxBuckets,
  };
}

/** PUT /settings: fields left out keep their values. */
export const settings = z
  .strictObject({
    timezone: label.optional(),
    minOutputTokens: count.optional(),
    reservationTtlSeconds: ttlSeconds.optional(),
    onExpiry: z.enum(['assume-spent', 'release']).optional(),
    onNoBudget: z.enum(['allow', 'refuse']).optional(),
    requireExactPrice: z.boolean().optional(),
    enforcement: z.enum(['enforce', 'observe']).optional(),
    workloads: z
      .record(
        label,
        z.strictObject({
          minOutputTokens: count.optional(),
          enforcement: z.enum(['enforce', 'observe']).optional(),
        }),
      )
      .optional(),
  })
  .meta({ id: 'Settings' });

export const openLedger = z.strictObject({ settings: settings.optional() }).nullish();

const rates = z
  .record(z.string(), z.unknown())
  .superRefine((value, context) => {
    if (Object.keys(value).length === 0) context.addIssue({ code: 'custom', message: 'names no rate' });
    for (const { path, message } of validateRates(value)) {
      context.addIssue({ code: 'custom', path: path.split('.'), message });
    }
  })
  .transform((value) => value as RatesText);

/** A price: USD per million tokens, per piece for images, audioSeconds, searches and requests. */
export const price = z
  .strictObject({
    rates,
    serviceTiers: z.record(label, rates).optional(),
    embedding: z.boolean().optional(),
  })
  .meta({ id: 'Price' });
