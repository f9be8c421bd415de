import { checkBudget } from '../../src/schemas/check';
import { MAX_FAULTS, faultsOf } from '../../src/schemas/faults';
import { budget, definitionOf } from '../../src/schemas/policy';
import { recordUsage } from '../../src/schemas/usage';
import { toRecordUsage } from '../../src/http/translate';
import { Problem } from '../../src/http/problems/problem';

const ACCOUNT = { provider: 'anthropic', fingerprint: 'a1'.repeat(32) };
const CHECK = { requestId: 'r', account: ACCOUNT, model: 'm', estimate: { inputTokens: 5 } };
const KEYS = [
  'sk-ant-api03-QwErTyUiOpAsDf',
  'sk_live_abcdefgh',
  'AIzaSyD4f8Gh2Jk1Lm3No5Pq7Rs9Tu0Vw2Xy4Za',
  'gsk_Ab1Cd2Ef3Gh4',
  'a'.repeat(40),
];

const faults = (schema: typeof checkBudget | typeof recordUsage | typeof budget, body: unknown) => {
  const read = schema.safeParse(body);
  return read.success ? [] : faultsOf(read.error);
};

describe('faults', () => {
  it('names what is missing, what has the wrong type, and what nobody knows, by path', () => {
    const body = { account: { provider: 5 }, model: 'm', estimate: { inputTokens: 5, tokens: 1 } };
    expect(faults(checkBudget, body)).toEqual([
      { path: 'requestId', message: 'is missing' },
      { path: 'account.provider', message: 'is not of type string' },
      { path: 'account.fingerprint', message: 'is missing' },
      { path: 'estimate.tokens', message: 'is not a known field' },
    ]);
  });

  it.each(KEYS)('never repeats a key, wherever it was pasted: %s', (key) => {
    const bodies = [
      { ...CHECK, [key]: 1 },
      { ...CHECK, tags: { [key]: 5 } },
      { ...CHECK, tags: { [`${key}!`]: 'x' } },
      { ...CHECK, account: { provider: key, fingerprint: key } },
      { ...CHECK, account: { provider: 'anthropic', fingerprint: { [key]: key } } },
    ];
    for (const body of bodies) {
      const found = faults(checkBudget, body);
      expect(found.length).toBeGreaterThan(0);
      expect(JSON.stringify(found)).not.toContain(key);
    }
  });

  it('are bounded, and say how many more there are', () => {
    const many = Object.fromEntries(
      Array.from({ length: 500 }, (_, i) => [`field${i % 10}${'x'.repeat(i / 10)}`, 1]),
    );
    const found = faults(checkBudget, { ...CHECK, ...many });
    expect(found).toHaveLength(MAX_FAULTS + 1);
    expect(found.at(-1)).toEqual({ path: '', message: '300 faults more' });
  });
});

describe('times', () => {
  const window = (from: string, to: string) =>
    budget.safeParse({ window: { from, to }, limit: '1' }).data?.window;

  it('casebook 26: an offset is not dropped but brought to UTC', () => {
    expect(window('2026-01-01T00:00:00+02:00', '2026-02-01T00:00:00.5-05:30')).toEqual({
      from: '2025-12-31T22:00:00.000Z',
      to: '2026-02-01T05:30:00.500Z',
    });
  });

  it('an offset that leaves the four digits of a year is a fault', () => {
    expect(window('0000-01-01T00:00:00+23:59', '2026-01-01T00:00:00Z')).toBeUndefined();
    expect(window('2026-01-01T00:00:00Z', '9999-12-31T23:59:59-01:00')).toBeUndefined();
    expect(window('2026-02-30T00:00:00Z', '2027-01-01T00:00:00Z')).toBeUndefined();
  });
});

describe('budgets', () => {
  it('get their defaults; thresholds are off with each', () => {
    const plain = budget.parse({ window: 'day', limit: '5.00' });
    expect(definitionOf('b', plain)).toEqual({
      id: 'b',
      match: {},
      each: [],
      window: 'day',
      limit: '5',
      setAsides: [],
      mode: 'enforce',
      thresholds: [0.5, 0.8, 1],
      maxBuckets: 1_000_000,
    });
    const each = budget.parse({ window: 'day', limit: '5', each: ['tag.team', 'subject', 'subject'] });
    expect(definitionOf('b', each)).toMatchObject({ each: ['subject', 'tag.team'], thresholds: [] });
  });

  it('casebook 6: a negative limit is a fault, zero is a limit', () => {
    expect(faults(budget, { window: 'day', limit: '-1' })).toEqual([
      { path: 'limit', message: 'is not between 0 and 1000000' },
    ]);
    expect(budget.parse({ window: 'day', limit: '0' }).limit).toBe('0');
  });

  it('unknown dimensions and windows are faults', () => {
    expect(faults(budget, { window: 'year', limit: '1', each: ['colour'] }).map(({ path }) => path)).toEqual([
      'each.0',
      'window',
    ]);
  });
});

describe('records of usage', () => {
  const UNRESERVED = { usageId: 'u', account: ACCOUNT, model: 'm', outcome: 'succeeded' };
  const record = (body: object) => toRecordUsage(recordUsage.parse(body));

  it('take a reported cost as a string or as the number a provider’s JSON carries', () => {
    expect(record({ ...UNRESERVED, reportedCost: '0.0125' }).reportedCost).toBe('0.0125');
    expect(record({ ...UNRESERVED, reportedCost: 0.0125 }).reportedCost).toBe('0.0125');
    expect(record({ ...UNRESERVED, reportedCost: 1e-7 }).reportedCost).toBe('0.0000001');
  });

  it('list the faults of a provider’s usage under its path', () => {
    expect.assertions(1);
    try {
      record({ ...UNRESERVED, providerUsage: { input_tokens: -1, output_tokens: 'x' } });
    } catch (error) {
      const { members } = error as Problem;
      expect((members['faults'] as { path: string }[]).map(({ path }) => path)).toEqual([
        'providerUsage.input_tokens',
        'providerUsage.output_tokens',
      ]);
    }
  });
});
