import fc from 'fast-check';
import { formatMoney } from '../../src/domain/money';
import { estimateUsage, parseRates, priceUsage, ratesFor, validateRates } from '../../src/domain/pricing';
import type { Price, RatesText } from '../../src/domain/prices';
import { USAGE_CLASSES } from '../../src/domain/usage';
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

  it('costs nothing below zero, more for more, and no less apart than together', () => {
    const classes = fc.constantFrom(...USAGE_CLASSES);
    const amounts = fc.dictionary(classes, fc.bigInt(0n, 10n ** 12n).map(formatMoney));
    const counts = fc.dictionary(classes, fc.nat(400_000_000));
    fc.assert(
      fc.property(amounts, counts, counts, (text, a, b) => {
        const rates = parseRates(text);
        const price = (usage: Usage) => priceUsage(rates, usage).cost;
        const both: Record<string, number> = { ...a };
        for (const [name, count] of Object.entries(b)) both[name] = (both[name] ?? 0) + count;
        const [one, other, together] = [price(a), price(b), price(both)];
        expect(one >= 0n && one <= together && other <= together).toBe(true);
        // Each is rounded up by less than a nano-dollar.
        expect(together <= one + other && one + other <= together + 1n).toBe(true);
        const free = USAGE_CLASSES.filter((name) => (a[name] ?? 0) > 0 && text[name] === undefined);
        expect(priceUsage(rates, a).unpriced).toEqual(free);
      }),
    );
  });

  it('casebook 23: any usage is priced whole at the highest tier below its input', () => {
    const tiered = fc.record({
      above: fc.array(fc.nat(1_000_000), { minLength: 1, maxLength: 4 }),
      rate: fc.nat(1_000_000_000),
      cached: fc.nat(600_000),
      input: fc.nat(600_000),
    });
    fc.assert(
      fc.property(tiered, ({ above, rate, cached, input }) => {
        const starts = [...new Set(above)];
        const at = (i: number) => formatMoney(BigInt(rate + i));
        // Out of order on purpose: the highest counts, not the last.
        const tiers = starts.map((start) => ({ above: start, rate: at(start) })).reverse();
        const rates = parseRates({ inputTokens: { base: at(0), tiers }, cacheReadTokens: '0' });
        const top = Math.max(0, ...starts.filter((start) => input + cached > start));
        const exact = BigInt(input) * BigInt(rate + top);
        expect(priceUsage(rates, { inputTokens: input, cacheReadTokens: cached }).cost).toBe(
          (exact + 999_999n) / 1_000_000n,
        );
      }),
    );
  });

  it('a flat fee is paid once a request, where the model has one', () => {
    const rates = parseRates({ inputTokens: '1', requests: '0.012' });
    expect(formatMoney(priceUsage(rates, { inputTokens: 1_000 }, { requests: 1 }).cost)).toBe('0.013');
    expect(priceUsage(parseRates(HAIKU), {}, { requests: 1 }).cost).toBe(0n);
  });

  it('casebook 24: 2,500 requests of 0.004 are 10, and no float is in between', () => {
    const rates = parseRates({ inputTokens: '1' });
    let sum = 0n;
    for (let i = 0; i < 2_500; i += 1) sum += priceUsage(rates, { inputTokens: 4_000 }).cost;
    expect(formatMoney(sum)).toBe('10');
    expect(cost({ inputTokens: '1', outputTokens: '5' }, { inputTokens: 660_000, outputTokens: 380 })).toBe(
      '0.6619',
    );
  });

  it('reads the same text once', () => {
    expect(parseRates(HAIKU)).toBe(parseRates(HAIKU));
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

describe('estimates of cache writes', () => {
  const input = (rates: RatesText, cacheWrite: '5m' | '1h', inputTokens = 10) =>
    Object.keys(
      estimateUsage(
        { inputTokens, cacheWrite },
        { minOutputTokens: 0, rates: parseRates(rates), embedding: true },
      ),
    )[0];

  it('a one-hour write without its rate is taken as a five-minute one, and none is cheaper than input', () => {
    expect(input(HAIKU, '1h')).toBe('cacheWrite1hTokens');
    expect(input(HAIKU, '5m')).toBe('cacheWrite5mTokens');
    expect(input({ inputTokens: '1', cacheWrite5mTokens: '1.25' }, '1h')).toBe('cacheWrite5mTokens');
    expect(input({ inputTokens: '0.3', cacheWrite5mTokens: '0.08' }, '5m')).toBe('inputTokens');
    expect(input({ inputTokens: '1' }, '1h')).toBe('inputTokens');
  });

  it('casebook 23: compares at the tier of the request', () => {
    const rates: RatesText = {
      inputTokens: { base: '1', tiers: [{ above: 200_000, rate: '2' }] },
      cacheWrite5mTokens: '1.25',
    };
    expect(input(rates, '5m', 200_000)).toBe('cacheWrite5mTokens');
    expect(input(rates, '5m', 200_001)).toBe('inputTokens');
  });

  it('passes on what else the caller announces', () => {
    const rules = { minOutputTokens: 16, rates: parseRates(HAIKU), embedding: false };
    expect(estimateUsage({ searches: 3, images: 0, audioSeconds: 7, audioInputTokens: 5 }, rules)).toEqual({
      inputTokens: 0,
      outputTokens: 16,
      audioInputTokens: 5,
      audioSeconds: 7,
      searches: 3,
    });
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

  it('are bounded, and nothing but rates', () => {
    const tiers = Array.from({ length: 17 }, (_, i) => ({ above: i, rate: '1' }));
    const paths = (rate: unknown) => validateRates({ inputTokens: rate }).map(({ path }) => path);
    expect(paths('1000000')).toEqual([]);
    expect(paths('1000000.000000001')).toEqual(['inputTokens']);
    expect(paths({ base: '1', tiers })).toEqual(['inputTokens.tiers']);
    expect(paths({ base: '1', tiers: tiers.slice(1) })).toEqual([]);
    expect(paths({ base: '1', tiers: [], note: 'x' })).toEqual(['inputTokens']);
    expect(paths({ base: '1', tiers: [{ above: 1, rate: '1', note: 'x' }] })).toEqual([
      'inputTokens.tiers.0',
    ]);
    expect(paths({ base: '1', tiers: [null, 'x'] })).toHaveLength(4);
    expect(paths({ base: '1' })).toEqual(['inputTokens']);
    expect(
      validateRates({ constructor: '1', requests: '0.01', images: '0.04' }).map(({ path }) => path),
    ).toEqual(['constructor']);
  });
});
