import { z } from 'zod';
import { checkBudget } from '../../src/schemas/check';
import { faultsOf } from '../../src/schemas/faults';
import { recordUsage } from '../../src/schemas/usage';
import { bodyHashOf, toCheckBudget, toRecordUsage } from '../../src/http/translate';

const ACCOUNT = { provider: 'anthropic', fingerprint: 'a1'.repeat(32) };
const CHECK = { requestId: 'r', account: ACCOUNT, model: 'm', estimate: { inputTokens: 1 } };
const paths = (schema: z.ZodType, input: unknown): string[] =>
  faultsOf(schema.safeParse(input).error ?? new z.ZodError([]))
    .map(({ path }) => path)
    .sort();

describe('faults', () => {
  it('are named by path, all at once', () => {
    const input = { ...CHECK, requestId: '', estimate: { inputTokens: -1, searches: 1.5 }, ttlSeconds: 0 };
    expect(paths(checkBudget, input)).toEqual([
      'estimate.inputTokens',
      'estimate.searches',
      'requestId',
      'ttlSeconds',
    ]);
  });

  it.each([
    'maxTokens',
    'apiKey',
    'cache_creation_input_tokens',
    'ephemeral_5m_input_tokens',
    'cost-center',
    'team.name',
  ])('name the field %s', (name) => {
    expect(paths(z.strictObject({}), { [name]: 1 })).toEqual([name]);
  });

  it.each([
    'sk-ant-api03-abc',
    'SK-ANT-API03-ABC',
    'sk_live_1234',
    'AIzaSyD9aB3cD4eF5gH6iJ7kL8mN9oP0qR1sT2u',
    'gsk_abc',
    'xai-abc',
    'a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6',
    'with a space',
    'x'.repeat(41),
  ])('do not name %s, which may be a key', (name) => {
    expect(paths(z.strictObject({}), { [name]: 1 })).toEqual(['(unknown field)']);
    expect(paths(z.record(z.string(), z.string()), { [name]: 1 })).toEqual(['(unknown field)']);
  });

  it('carry no value that was sent', () => {
    const secret = 'sk-ant-api03-veryverysecret';
    const inputs = [
      { ...CHECK, account: secret },
      { ...CHECK, account: { provider: secret, fingerprint: secret } },
      { ...CHECK, estimate: secret, tags: secret, fallbacks: [secret], reserve: secret, ttlSeconds: secret },
    ];
    for (const input of inputs) {
      const { error } = checkBudget.safeParse(input);
      expect(JSON.stringify(faultsOf(error ?? new z.ZodError([])))).not.toContain(secret);
    }
  });
});

describe('what a body is understood as', () => {
  const hash = (body: object) => toCheckBudget(checkBudget.parse(body)).bodyHash;

  it('is the same whatever its order, and with a default spelt out', () => {
    const { estimate, model, account, requestId } = CHECK;
    expect(hash({ estimate, model, account, requestId, reserve: true, attempt: 1 })).toBe(hash(CHECK));
    expect(hash({ ...CHECK, tags: { b: '2', a: '1' } })).toBe(hash({ ...CHECK, tags: { a: '1', b: '2' } }));
  });

  it('differs with any field of its identity', () => {
    const bodies = [
      CHECK,
      { ...CHECK, requestId: 's' },
      { ...CHECK, attempt: 2 },
      { ...CHECK, model: 'n' },
      { ...CHECK, account: { ...ACCOUNT, provider: 'openai' } },
      { ...CHECK, estimate: { inputTokens: 2 } },
      { ...CHECK, reserve: false },
    ];
    expect(new Set(bodies.map(hash)).size).toBe(bodies.length);
    expect(bodyHashOf({})).toMatch(/^[0-9a-f]{32}$/);
  });

  const recorded = (rest: object) =>
    toRecordUsage(recordUsage.parse({ reservationId: 'x', outcome: 'failed', ...rest }));

  it.each<[string, object, object]>([
    ['flat', { status: 429, type: 'rate_limit_error' }, { status: 429, type: 'rate_limit_error' }],
    [
      'as the Anthropic SDK has it',
      { status: 400, body: { type: 'error', error: { type: 'invalid_request_error', message: 'too low' } } },
      { status: 400, type: 'invalid_request_error' },
    ],
    ['as text', { status: 402, body: '{"error":{"code":402,"message":"x"}}' }, { status: 402, code: '402' }],
    [
      'nested twice',
      { status: 429, error: { error: { type: 't', code: 'insufficient_quota' } } },
      { status: 429, type: 't', code: 'insufficient_quota' },
    ],
    ['of nonsense', { status: 500, type: { a: 1 }, code: 'x'.repeat(101), body: '<html>' }, { status: 500 }],
  ])('keeps of an error %s its status, type and code', (_name, error, kept) => {
    expect(recorded({ error }).error).toEqual({ type: undefined, code: undefined, ...kept });
  });

  it('takes an aborted call’s usage for what was seen so far, unless it is said to be final', () => {
    const usage = { outputTokens: 5 };
    expect(recorded({ outcome: 'aborted', usage }).partial).toBe(true);
    expect(recorded({ outcome: 'aborted', usage, usageFinal: true }).partial).toBe(false);
    expect(recorded({ outcome: 'failed', usage }).partial).toBe(false);
  });

  it.each<[string, object, string[]]>([
    ['both identities', { usageId: 'u', account: ACCOUNT, model: 'm' }, ['account', 'reservationId']],
    ['both usages', { usage: {}, providerUsage: {} }, ['providerUsage']],
    ['whose it was, though the reservation knows', { workload: 'chat' }, ['workload']],
  ])('cannot have %s', (_name, rest, faults) => {
    expect(paths(recordUsage, { reservationId: 'x', outcome: 'succeeded', ...rest })).toEqual(faults);
  });
});
