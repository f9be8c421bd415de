import { z } from 'zod';
import { isFingerprint } from '../domain/attempt';
import { SLUG, TAG_KEY } from '../domain/identifiers';
import { MAX_AMOUNT, isMoney, parseMoney } from '../domain/money';
import { MAX_COUNT } from '../domain/usage';

/** NUL and lone surrogates would fail a whole batch in the store: they stop here. */
// eslint-disable-next-line no-control-regex -- NUL is what it looks for
const isStorable = (text: string): boolean => !/[\u0000\p{Surrogate}]/u.test(text);

const text = (longest: number) =>
  z
    .string()
    .min(1, 'is empty')
    .max(longest, `is longer than ${longest} characters`)
    .refine(isStorable, 'has a NUL or half a surrogate pair');

export const identifier = text(200);
export const label = text(200);
export const reason = text(1_000);
export const slug = z.string().regex(SLUG, 'is not a lower-case slug');
export const provider = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,39}$/, 'is not a lower-case slug');
export const count = z
  .number()
  .int('is not a whole number')
  .min(0, 'is negative')
  .max(MAX_COUNT, `is above ${MAX_COUNT}`);
export const ttlSeconds = z
  .number()
  .int('is not a whole number')
  .min(1, 'is below 1')
  .max(86_400, 'is above 86400');

/** The value never appears in an answer or a log: it may be the key itself. */
export const fingerprint = z
  .string()
  .refine(isFingerprint, 'is not 64 lower-case hex digits (the SHA-256 of the API key, never the key)');

export const account = z.strictObject({ provider, fingerprint }).meta({ id: 'Account' });

/** Decimal USD. */
export const amount = z
  .string()
  .refine(isMoney, 'is not a decimal USD amount with at most nine decimals')
  .refine(
    (value) => !isMoney(value) || (parseMoney(value) >= 0n && parseMoney(value) <= MAX_AMOUNT),
    'is not between 0 and 1000000',
  );

/** A cost as providers give it: a decimal string, or the number their JSON carries. */
export const reportedCost = z.union([
  amount,
  z.number().min(0, 'is negative').max(1_000_000, 'is above 1000000'),
]);

/** Before it no model was sold; after it the four digits of a year end, and with them the order of texts. */
const isOfThisAge = (text: string): boolean => {
  const ms = Date.parse(text);
  return Number.isNaN(ms) || (ms >= 0 && ms < Date.UTC(10_000, 0, 1));
};

/** RFC 3339, any offset; brought to UTC milliseconds. */
export const time = z.iso
  .datetime({ offset: true, error: 'is not an RFC 3339 time' })
  .refine(isOfThisAge, 'is not between the years 1970 and 9999')
  .transform((value) => new Date(value).toISOString());

export const tags = z
  .record(z.string().regex(TAG_KEY, 'is not a tag key'), label)
  .refine((value) => Object.keys(value).length <= 32, 'has more than 32 tags')
  .transform((value) => Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))));
