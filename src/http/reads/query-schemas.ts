import { z } from 'zod';
import { TAG_KEY } from '../../domain/identifiers';
import { CURRENT_SCHEMA_VERSION } from '../../domain/upcast';
import type { EventType } from '../../domain/events';
import { RESERVATION_STATES } from '../../queries/attempts';
import { SPEND_DIMENSIONS } from '../../queries/spend';
import type { SpendDimension } from '../../queries/spend';
import { invalidRequest } from '../problems/problem';
import { fingerprint, identifier, label, provider, slug, time } from '../../schemas/primitives';

/** A whole number as query strings have it: digits and nothing else. */
const digits = z.string().regex(/^\d{1,15}$/, 'is not a whole number');
const revision = digits.transform(Number);
const limit = digits
  .transform(Number)
  .refine((value) => value >= 1, 'is below 1')
  .refine((value) => value <= 1_000, 'is above 1000');
/** The position the answer must have seen. */
export const after = revision.optional();
const page = { limit: limit.optional(), cursor: z.string().min(1, 'is empty').max(4_000).optional() };

export const onlyAfter = z.strictObject({ after });
export const nothing = z.strictObject({});
export const paged = z.strictObject({ after, ...page });
export const budgets = z.strictObject({
  after,
  ...page,
  includeRetired: z
    .enum(['true', 'false'])
    .transform((value) => value === 'true')
    .optional(),
});
export const reservations = z.strictObject({ after, ...page, state: z.enum(RESERVATION_STATES).optional() });

export const requestId = identifier;
export const budgetId = slug;

const moment = z.union([z.iso.date(), time], 'is neither a day nor an RFC 3339 time');
export const spend = z.strictObject({
  after,
  ...page,
  from: moment.optional(),
  to: moment.optional(),
  by: z
    .string()
    .transform((text) => (text === '' ? [] : text.split(',')))
    .pipe(z.array(z.enum(SPEND_DIMENSIONS)))
    .transform((names): SpendDimension[] => [...new Set(names)])
    .optional(),
});

export const prices = z.strictObject({
  after,
  ...page,
  provider: provider.optional(),
  model: label.optional(),
});

export const state = z
  .strictObject({ after, at: time.optional(), revision: revision.optional() })
  .refine((value) => value.at === undefined || value.revision === undefined, {
    path: ['at'],
    error: 'at and revision exclude each other',
  });

/** `tag.<key>` are fields of the query string. */
export const headroom = z
  .object({
    after,
    provider: provider.optional(),
    account: fingerprint.optional(),
    model: label.optional(),
    workload: label.optional(),
    subject: label.optional(),
    conversation: label.optional(),
  })
  .catchall(label)
  .transform((value, context) => {
    const { after: position, provider: by, account, model, workload, subject, conversation, ...rest } = value;
    const tags: Record<string, string> = {};
    for (const [name, given] of Object.entries(rest)) {
      const key = name.startsWith('tag.') ? name.slice(4) : '';
      if (TAG_KEY.test(key)) tags[key] = given;
      else context.addIssue({ code: 'unrecognized_keys', keys: [name], input: value });
    }
    const question = { provider: by, account, model, workload, subject, conversation };
    return {
      after: position,
      question: Object.keys(tags).length > 0 ? { ...question, tags } : question,
    };
  });

const TYPES = Object.keys(CURRENT_SCHEMA_VERSION) as [EventType, ...EventType[]];
export const events = z.strictObject({
  /** The revision that was seen last: `nextCursor`, a `position`, or the id of a server-sent event; empty: from the first. */
  after: z.union([z.literal('').transform(() => undefined), revision]).optional(),
  limit: page.limit,
  type: z.enum(TYPES).optional(),
  requestId: identifier.optional(),
  conversation: label.optional(),
  from: time.optional(),
  to: time.optional(),
});

/** Where a live stream was cut off; it wins over `after`, which a browser repeats as it was. Throws a 400. */
export function lastEventIdOf(header: string | string[] | undefined): number | undefined {
  if (header === undefined || header === '') return undefined;
  const read = revision.safeParse(header);
  if (read.success) return read.data;
  throw invalidRequest([{ path: 'Last-Event-ID', message: 'is not the id of one of our events' }]);
}
