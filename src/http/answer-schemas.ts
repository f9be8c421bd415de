import { z } from 'zod';
import { REFUSAL_CODES } from '../domain/events';
import { USAGE_CLASSES } from '../domain/usage';
import { account } from '../schemas/primitives';

/** What commands answer, for the OpenAPI document; the end-to-end tests hold real answers against it. */
const usd = z.string().describe('decimal USD');
const time = z.string().describe('RFC 3339 UTC');
const position = z.int().describe('the stream revision that answers; queries take it as `after`');

const window = z
  .strictObject({
    kind: z.enum(['day', 'week', 'month', 'fixed', 'lifetime']),
    from: time.optional(),
    to: time.optional(),
  })
  .meta({ id: 'Window' });
const bucket = z.record(z.string(), z.string().nullable());

const balance = z
  .strictObject({
    id: z.string(),
    generation: z.int(),
    window,
    bucket: bucket.optional(),
    setAsideIndex: z.int().optional(),
    limit: usd,
    charged: usd,
    held: usd,
    remaining: usd,
    resetsAt: time.optional(),
  })
  .meta({ id: 'BudgetBalance' });

const reason = z
  .strictObject({
    code: z.enum(REFUSAL_CODES),
    candidate: z.int().describe('0: the request itself, n: its n-th fallback'),
    detail: z.string().optional(),
    budget: z.string().optional(),
    window: window.optional(),
    bucket: bucket.optional(),
    limit: usd.optional(),
    charged: usd.optional(),
    held: usd.optional(),
    setAside: usd.optional(),
    remaining: usd.optional(),
    resetsAt: time.optional(),
    incident: z.string().optional(),
  })
  .meta({ id: 'Reason' });

const estimate = z
  .strictObject({ inputTokens: z.int(), outputTokens: z.int(), amount: usd.optional() })
  .meta({ id: 'EstimateAnswer' });

const allowed = z
  .strictObject({
    decision: z.literal('allowed'),
    requestId: z.string(),
    attempt: z.int(),
    account,
    model: z.string(),
    fallbackFrom: z.strictObject({ account, model: z.string() }).optional(),
    reservation: z.strictObject({ id: z.string(), amount: usd, expiresAt: time }).optional(),
    estimate,
    budgets: z.array(balance),
    skipped: z.array(reason).optional(),
    warnings: z.array(reason).optional(),
    wouldRefuse: z.array(reason).optional(),
    unbudgeted: z.literal(true).optional(),
    position,
  })
  .meta({ id: 'CheckAllowed' });

/** What a refusal says, as a problem or as advice. */
const refusal = {
  requestId: z.string(),
  attempt: z.int(),
  code: z.enum(REFUSAL_CODES),
  reasons: z.array(reason),
  estimate: estimate.optional(),
  retryAt: time.optional(),
  nextAttempt: z.int().optional(),
  position,
};
const advice = z
  .strictObject({ decision: z.literal('refused'), ...refusal })
  .meta({ id: 'CheckRefusedAdvice' });

const problem = {
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
};
export const problemAnswer = z
  .looseObject({
    ...problem,
    faults: z.array(z.strictObject({ path: z.string(), message: z.string() })).optional(),
    outcome: z.enum(['none', 'unknown']).optional(),
    nextAttempt: z.int().optional(),
  })
  .describe('RFC 9457')
  .meta({ id: 'Problem' });
export const refusedAnswer = z.strictObject({ ...problem, ...refusal }).meta({ id: 'BudgetRefused' });

export const checkAnswer = z.union([allowed, advice]);
export const usageAnswer = z
  .strictObject({
    chargeId: z.string(),
    charged: usd,
    released: usd,
    overrun: usd,
    quality: z.enum(['assumed', 'confirmed', 'unconfirmed']),
    late: z.literal(true).optional(),
    unpriced: z.literal(true).optional(),
    position,
  })
  .meta({ id: 'UsageRecorded' });
export const bulkAnswer = z
  .strictObject({
    results: z.array(
      z.strictObject({
        status: z.int(),
        replayed: z.literal(true).optional(),
        body: z.record(z.string(), z.unknown()).describe('what the call on its own answers'),
      }),
    ),
  })
  .meta({ id: 'BulkResults' });
export const releasedAnswer = z
  .strictObject({ reservationId: z.string(), released: usd, position })
  .meta({ id: 'ReservationReleased' });
export const extendedAnswer = z
  .strictObject({ reservationId: z.string(), expiresAt: time, position })
  .meta({ id: 'ReservationExtended' });
export const correctedAnswer = z
  .strictObject({ chargeId: z.string(), charged: usd, previous: usd, position })
  .meta({ id: 'ChargeCorrected' });

const enforcement = z.enum(['enforce', 'observe']);
const settings = {
  timezone: z.string(),
  minOutputTokens: z.int(),
  reservationTtlSeconds: z.int(),
  onExpiry: z.enum(['assume-spent', 'release']),
  onNoBudget: z.enum(['allow', 'refuse']),
  requireExactPrice: z.boolean(),
  enforcement,
  workloads: z.record(
    z.string(),
    z.strictObject({ minOutputTokens: z.int().optional(), enforcement: enforcement.optional() }),
  ),
  position,
};
export const settingsAnswer = z.strictObject(settings).meta({ id: 'SettingsAnswer' });
export const openedAnswer = z.strictObject({ ledger: z.string(), ...settings }).meta({ id: 'LedgerAnswer' });

const match = z.strictObject({
  provider: z.string().optional(),
  account: z.string().optional(),
  model: z.string().optional(),
  workload: z.string().optional(),
  subject: z.string().optional(),
  conversation: z.string().optional(),
  tags: z.record(z.string(), z.string()).optional(),
});
export const budgetAnswer = z
  .strictObject({
    id: z.string(),
    match,
    each: z.array(z.string()),
    window: z.union([z.enum(['day', 'week', 'month', 'lifetime']), z.strictObject({ from: time, to: time })]),
    limit: usd,
    setAsides: z.array(z.strictObject({ match, amount: usd })),
    mode: z.enum(['enforce', 'warn']),
    thresholds: z.array(z.number()),
    maxBuckets: z.int(),
    generation: z.int(),
    position,
  })
  .meta({ id: 'BudgetAnswer' });
export const budgetRetiredAnswer = z.strictObject({ id: z.string(), position }).meta({ id: 'BudgetRetired' });

const rate = z.union([
  usd,
  z.strictObject({ base: usd, tiers: z.array(z.strictObject({ above: z.int(), rate: usd })) }),
]);
const rates = z.partialRecord(z.enum([...USAGE_CLASSES, 'requests']), rate);
export const priceAnswer = z
  .strictObject({
    priceId: z.string(),
    provider: z.string(),
    model: z.string(),
    source: z.enum(['catalogue', 'override']),
    origin: z.string(),
    rates,
    serviceTiers: z.record(z.string(), rates).optional(),
    embedding: z.boolean().optional(),
    position,
  })
  .meta({ id: 'PriceAnswer' });
export const priceRetiredAnswer = z
  .strictObject({ provider: z.string(), model: z.string(), position })
  .meta({ id: 'PriceRetired' });
