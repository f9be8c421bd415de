import fc from 'fast-check';
import { formatMoney } from '../../src/domain/money';
import { estimateUsage, parseRates, priceUsage, ratesFor, validateRates } from '../../src/domain/pricing';
import type { Price, RatesText } from '../../src/domain/prices';
import type { Usage } from '../../src/domain/usage';

const HAIKU: RatesText = {
  inputTokens: '1',
  outputTokens: '5',
  cacheReadTokens: '0.1',
  cacheWrite5mTokens: '1.25',
  cacheWrite1hTokens: '2',
  searches: '0.01',
};
const cost = (rates: RatesText, usage: Usage) => formatMoney(priceUsage(parseRates(rates), usage).cost);

describe('pricing', () => {
  it('prices every class at its own rate, per million tokens or per piece', () => {
    expect(cost(HAIKU, { inputTokens: 55_586, outputTokens: 1_000 })).toBe('0.060586');
    expect(cost(HAIKU, { cacheReadTokens: 1_000_000, cacheWrite5mTokens: 1_000_000 })).toBe('1.35');
    expect(cost(HAIKU, { searches: 3 })).toBe('0.03');
  });

  it('casebook 20: a one-hour cache write costs its own rate', () => {
    expect(cost(HAIKU, { cacheWrite1hTokens: 1_720_000 })).toBe('3.44');
    expect(cost(HAIKU, { cacheWrite5mTokens: 1_720_000 })).toBe('2.15');
  });

  it('casebook 21: a class without a rate is named, never free', () => {
    const priced = priceUsage(parseRates({ inputTokens: '1' }), { inputTokens: 10, cacheReadTokens: 5 });
    expect(priced.unpriced).toEqual(['cacheReadTokens']);
    expect(priceUsage(parseRates({ inputTokens: '0' }), { inputTokens: 10 })).toEqual({
      cost: 0n,
      unpriced: [],
    });
  });

  it('casebook 23: the whole request is priced at the tier its input exceeds', () => {
    const tiered: RatesText = {
      inputTokens: { base: '1.25', tiers: [{ above: 200_000, rate: '2.5' }] },
      outputTokens: { base: '10', tiers: [{ above: 200_000, rate: '15' }] },
      cacheReadTokens: '0',
    };
    expect(cost(tiered, { inputTokens: 200_000, outputTokens: 1_000 })).toBe('0.26');
    expect(cost(tiered, { inputTokens: 200_001, outputTokens: 1_000 })).toBe('0.5150025');
    expect(cost(tiered, { inputTokens: 1, cacheReadTokens: 200_000, outputTokens: 1_000 })).toBe('0.0150025');
  });

  it('casebook 24: rounds up to the nano-dollar once, never to nothing', () => {
    expect(cost({ inputTokens: '0.0001' }, { inputTokens: 1 })).toBe('0.000000001');
    expect(cost({ inputTokens: '0.0003', outputTokens: '0.0003' }, { inputTokens: 1, outputTokens: 1 })).toBe(
      '0.000000001',
    );
  });

  it('equals exact rational arithmetic, rounded up, whatever the counts and rates', () => {
    fc.assert(
      fc.property(
        fc.nat(1_000_000_000),
        fc.nat(1_000_000_000),
        fc.bigInt(0n, 10n ** 13n),
        fc.bigInt(0n, 10n ** 13n),
        (input, output, a, b) => {
          const exact = BigInt(input) * a + BigInt(output) * b;
          const up = exact / 1_000_000n + (exact % 1_000_000n === 0n ? 0n : 1n);
          const rates = { inputTokens: formatMoney(a), outputTokens: formatMoney(b) };
          expect(priceUsage(parseRates(rates), { inputTokens: input, outputTokens: output }).cost).toBe(up);
        },
      ),
    );
  });

  it('a service tier has its own rates or none', () => {
    const price: Price = {
      priceId: 'p',
      provider: 'x',
      model: 'm',
      source: 'override',
      origin: 'operator',
      rates: HAIKU,
      serviceTiers: { batch: { inputTokens: '0.5' } },
    };
    expect(ratesFor(price, undefined)).toBe(HAIKU);
    expect(ratesFor(price, 'standard')).toBe(HAIKU);
    expect(ratesFor(price, 'batch')).toEqual({ inputTokens: '0.5' });
    expect(ratesFor(price, 'flex')).toBeUndefined();
    expect(ratesFor(price, 'constructor')).toBeUndefined();
  });
});

describe('estimates', () => {
  const rules = { minOutputTokens: 4_096, rates: parseRates(HAIKU), embedding: false };

  it('takes characters / 4, rounded up, and at least 4,096 output tokens', () => {
    expect(estimateUsage({ inputChars: 4_001 }, rules)).toEqual({ inputTokens: 1_001, outputTokens: 4_096 });
    expect(estimateUsage({ inputTokens: 7, inputChars: 4_001, maxOutputTokens: 9_000 }, rules)).toEqual({
      inputTokens: 7,
      outputTokens: 9_000,
    });
  });

  it('an embedding has no output', () => {
    expect(estimateUsage({ inputTokens: 7 }, { ...rules, embedding: true })).toEqual({
      inputTokens: 7,
      outputTokens: 0,
    });
  });

  it('a cache write is estimated at its rate where the model has one', () => {
    expect(estimateUsage({ inputTokens: 7, cacheWrite: '1h' }, rules).cacheWrite1hTokens).toBe(7);
    const plain = { ...rules, rates: parseRates({ inputTokens: '1', outputTokens: '2' }) };
    expect(estimateUsage({ inputTokens: 7, cacheWrite: '5m' }, plain).inputTokens).toBe(7);
  });
});

describe('rates an operator gives', () => {
  it('names every fault', () => {
    const faults = validateRates({
      inputTokens: '-1',
      outputTokens: 5,
      tokens: '1',
      cacheReadTokens: {
        base: '1',
        tiers: [
          { above: 5, rate: 'x' },
          { above: 5, rate: '1' },
        ],
      },
    });
    expect(faults.map((fault) => fault.path)).toEqual([
      'inputTokens',
      'outputTokens',
      'tokens',
      'cacheReadTokens.tiers.0.rate',
      'cacheReadTokens.tiers.1.above',
    ]);
  });
});
