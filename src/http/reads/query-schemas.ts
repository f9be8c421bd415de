import { z } from 'zod';
import { CURRENT_SCHEMA_VERSION } from '../../domain/upcast';
import type { EventType } from '../../domain/events';
import { SPEND_DIMENSIONS } from '../../queries/answers';
import type { SpendDimension } from '../../queries/answers';
import { TAG_KEY } from '../../domain/identifiers';
import { fingerprint, identifier, label, provider, time } from '../../schemas/primitives';

const revision = z.coerce
  .number()
  .int('is not a whole number')
  .min(0, 'is negative')
  .max(Number.MAX_SAFE_INTEGER);
/** The position the answer must have seen. */
export const after = revision.optional();
const page = {
  limit: z.coerce
    .number()
    .int('is not a whole number')
    .min(1, 'is below 1')
    .max(1_000, 'is above 1000')
    .optional(),
  cursor: z.string().max(2_000).optional(),
};

export const onlyAfter = z.strictObject({ after });
export const paged = z.strictObject({ after, ...page });
export const reservations = z.strictObject({
  after,
  ...page,
  state: z.enum(['held', 'assumed', 'unconfirmed', 'confirmed', 'released', 'expired-released']).optional(),
});

const moment = z.union([z.iso.date(), time], 'is neither a day nor an RFC 3339 time');
export const spend = z.strictObject({
  after,
  ...page,
  from: moment.optional(),
  to: moment.optional(),
  by: z
    .string()
    .default('day')
    .transform((text) => text.split(','))
    .pipe(z.array(z.enum(SPEND_DIMENSIONS)).min(1))
    .transform((names): SpendDimension[] => [...new Set(names)]),
});

export const prices = z.strictObject({ after, provider: provider.optional(), model: label.optional() });
export const state = z
  .strictObject({ at: time.optional(), revision: revision.optional() })
  .refine(
    (value) => value.at === undefined || value.revision === undefined,
    'at and revision exclude each other',
  );

/** `tag.<key>` are fields of the query string. */
export const headroom = z
  .looseObject({
    after,
    provider: provider.optional(),
    account: fingerprint.optional(),
    model: label.optional(),
    workload: label.optional(),
    subject: label.optional(),
    conversation: label.optional(),
  })
  .transform((value, context) => {
    const tags: Record<string, string> = {};
    const known = ['after', 'provider', 'account', 'model', 'workload', 'subject', 'conversation'];
    for (const [name, given] of Object.entries(value)) {
      if (known.includes(name)) continue;
      const key = name.startsWith('tag.') ? name.slice(4) : '';
      if (TAG_KEY.test(key) && typeof given === 'string') tags[key] = given;
      else context.addIssue({ code: 'custom', message: 'has a field that is not known' });
    }
    const { provider: by, account, model, workload, subject, conversation } = value;
    return {
      after: value.after,
      of: { provider: by, fingerprint: account, model, workload, subject, conversation, tags },
    };
  });

const TYPES = Object.keys(CURRENT_SCHEMA_VERSION) as [EventType, ...EventType[]];
export const events = z.strictObject({
  after: z.string().max(100).optional(),
  limit: page.limit,
  type: z.enum(TYPES).optional(),
  requestId: identifier.optional(),
  conversation: label.optional(),
  from: time.optional(),
  to: time.optional(),
});
