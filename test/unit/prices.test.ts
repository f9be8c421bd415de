import { existsSync, readFileSync } from 'node:fs';
import { formatMoney } from '../../src/domain/money';
import { calcPrice, waitForUpdate } from '@pydantic/genai-prices';
import { parseRates, priceUsage, validateRates } from '../../src/domain/pricing';
import type { Usage } from '../../src/domain/usage';
import { createCatalogue, listPrices } from '../../src/prices/catalogue';
import { LISTED_PROVIDERS, listOf } from '../../src/prices/providers';

const NOW = Date.parse('2026-11-30T12:00:00Z');
const catalogue = createCatalogue();
const rates = (provider: string, model: string) => catalogue(provider, model, NOW)?.price.rates ?? {};
describe('the catalogue', () => {
  it('gives exact decimals, the matched id, and whether the match was exact', () => {
    expect(catalogue('anthropic', 'claude-haiku-4-5', NOW)).toMatchObject({
      exact: true,
      price: {
        provider: 'anthropic',
        model: 'claude-haiku-4-5',
        source: 'catalogue',
        rates: {
          inputTokens: '1',
          outputTokens: '5',
          cacheReadTokens: '0.1',
          cacheWrite5mTokens: '1.25',
          cacheWrite1hTokens: '2',
          searches: '0.01',
        },
      },
    });
    expect(catalogue('anthropic', 'claude-haiku-4-5-20251001', NOW)).toMatchObject({
      exact: false,
      price: { model: 'claude-haiku-4-5' },
    });
    expect(catalogue('anthropic', 'gpt-4o', NOW)).toBeUndefined();
    expect(catalogue('nobody', 'claude-haiku-4-5', NOW)).toBeUndefined();
  });

  it('keeps tiers, and marks embeddings', () => {
    expect(rates('google', 'gemini-2.5-pro').inputTokens).toEqual({
      base: '1.25',
      tiers: [{ above: 200_000, rate: '2.5' }],
    });
    expect(catalogue('openai', 'text-embedding-3-small', NOW)?.price).toMatchObject({
      embedding: true,
      rates: { inputTokens: '0.02' },
    });
  });

  it('a price keeps its id while it stays the same, and knows the time of day', () => {
    const first = catalogue('deepseek', 'deepseek-chat', NOW)?.price;
    expect(catalogue('deepseek', 'deepseek-chat', NOW + 1_000)?.price.priceId).toBe(first?.priceId);
    expect(first?.priceId).toMatch(/^cat_[0-9a-f]{16}$/);
    expect(listPrices(NOW, 'anthropic', 'haiku-4-5').map(({ model }) => model)).toEqual(['claude-haiku-4-5']);
  });

  it('the hour of real requests costs exactly 19.289454 at claude-haiku-4-5', () => {
    const file = '../shared/data/azure-llm-2023-code.csv';
    if (!existsSync(file)) return;
    let sum = 0n;
    for (const line of readFileSync(file, 'utf8').trim().split(/\r?\n/).slice(1)) {
      const [, input, output] = line.split(',');
      sum += priceUsage(parseRates(rates('anthropic', 'claude-haiku-4-5')), {
        inputTokens: Number(input),
        outputTokens: Number(output),
      }).cost;
    }
    expect(formatMoney(sum)).toBe('19.289454');
  });

  it('casebook 20, 24: prices the exact sums at the catalogue’s rates', () => {
    const cost = (model: string, usage: Usage) =>
      formatMoney(priceUsage(parseRates(rates('anthropic', model)), usage).cost);
    expect(cost('claude-haiku-4-5', { cacheWrite1hTokens: 1_720_000 })).toBe('3.44');
    expect(cost('claude-haiku-4-5', { cacheWrite5mTokens: 1_720_000 })).toBe('2.15');
    expect(cost('claude-sonnet-4-5', { inputTokens: 200_000 })).toBe('0.6');
    expect(cost('claude-sonnet-4-5', { inputTokens: 200_001 })).toBe('1.200006');
  });

  it('one provider is never priced by the list of another unless the price says so', () => {
    expect(catalogue('my-openai-proxy', 'gpt-4o', NOW)).toBeUndefined();
    expect(catalogue('anthropic-eu', 'claude-haiku-4-5', NOW)).toBeUndefined();
    expect(catalogue('toString', 'gpt-4o', NOW)).toBeUndefined();
    const resold = catalogue('azure', 'claude-haiku-4-5', NOW);
    expect(resold).toMatchObject({ exact: false, price: { provider: 'azure', model: 'claude-haiku-4-5' } });
    expect(resold?.price.origin).toMatch(
      /^@pydantic\/genai-prices \d+\.\d+\.\d+; from the list of anthropic$/,
    );
    expect(resold?.price.priceId).not.toBe(catalogue('anthropic', 'claude-haiku-4-5', NOW)?.price.priceId);
  });

  it('knows providers under the names their users give them', () => {
    const [vertex, gemini] = ['vertex', 'gemini'].map((name) => rates(name, 'gemini-2.5-pro'));
    expect(vertex).toEqual(rates('google', 'gemini-2.5-pro'));
    expect(gemini).toEqual(vertex);
    expect(catalogue('xai', 'grok-4', NOW)).toMatchObject({
      exact: false,
      price: { provider: 'xai', model: 'grok-4-0709', rates: { inputTokens: '3', cacheReadTokens: '0.75' } },
    });
    expect(catalogue('bedrock', 'us.anthropic.claude-haiku-4-5-20251001-v1:0', NOW)?.price).toMatchObject({
      model: 'regional.anthropic.claude-haiku-4-5-20251001-v1:0',
      rates: { inputTokens: '1.1', cacheWrite5mTokens: '1.375', cacheWrite1hTokens: '2.2' },
    });
  });

  it('says which rates it derived', () => {
    const resold = catalogue('openrouter', 'anthropic/claude-haiku-4.5', NOW)?.price;
    expect(resold?.origin).toMatch(/; one-hour cache writes taken as 2 × input$/);
    expect(resold?.rates).toMatchObject({ cacheWrite5mTokens: '1.25', cacheWrite1hTokens: '2' });
    expect(catalogue('anthropic', 'claude-haiku-4-5', NOW)?.price.origin).toMatch(/^\S+ [\d.]+$/);
    expect(rates('google', 'gemini-2.5-flash')).toMatchObject({ inputTokens: '0.3', audioInputTokens: '1' });
    expect(rates('google', 'gemini-2.5-pro').audioInputTokens).toEqual(
      rates('google', 'gemini-2.5-pro').inputTokens,
    );
    expect(rates('openai', 'gpt-4o-audio-preview').audioInputTokens).toBeUndefined();
    expect(rates('google', 'gemini-2.5-flash-image').outputTokens).toBe('30');
  });

  it('brings figures per thousand and per hour to the piece and the second', () => {
    expect(rates('perplexity', 'sonar').requests).toBe('0.012');
    expect(rates('openai', 'whisper-1')).toEqual({ audioSeconds: '0.0001' });
    expect(rates('groq', 'whisper-large-v3')).toEqual({ audioSeconds: '0.000030834' });
    expect(rates('huggingface_together', 'Qwen/Qwen3-VL-8B-Instruct').inputTokens).toBe('0.18');
  });

  it('casebook 9, 22: a free model costs 0, one without a price has no rates', () => {
    expect(rates('openrouter', 'deepseek/deepseek-r1:free')).toMatchObject({
      inputTokens: '0',
      outputTokens: '0',
    });
    expect(catalogue('github-copilot', 'gpt-4.1', NOW)?.price.rates).toEqual({});
    expect(listPrices(NOW, 'github-copilot', 'gpt-4.1')).toEqual([]);
  });

  it('follows prices that change with the date and the hour, within one catalogue', () => {
    const at = (time: string) => catalogue('deepseek', 'deepseek-chat', Date.parse(time))?.price;
    const day = at('2026-11-30T16:29:59.999Z');
    const night = at('2026-11-30T16:30:00Z');
    expect(day?.priceId).not.toBe(night?.priceId);
    expect(at('2026-12-01T12:00:00Z')).toBe(day);
    const input = (time: string) => catalogue('openai', 'o3', Date.parse(time))?.price.rates.inputTokens;
    expect([input('2025-06-09T23:59:59Z'), input('2025-06-10T00:00:00Z')]).toEqual(['10', '2']);
  });

  it('prices every id it lists by that id, exactly, though its own pattern does not match it', () => {
    const regional = 'regional.anthropic.claude-haiku-4-5-20251001-v1:0';
    expect(catalogue('bedrock', regional, NOW)).toMatchObject({
      exact: true,
      price: {
        model: regional,
        rates: { inputTokens: '1.1', cacheWrite1hTokens: '2.2', outputTokens: '5.5' },
      },
    });
    for (const provider of LISTED_PROVIDERS) {
      const differing = listPrices(NOW, provider).filter((price) => {
        const match = catalogue(provider, price.model, NOW);
        return match?.exact !== true || match.price.priceId !== price.priceId;
      });
      expect(differing).toEqual([]);
    }
  });

  it('lists what would price a name that is no part of any id', () => {
    expect(listPrices(NOW, 'anthropic', 'claude-haiku-4-5-20251001').map(({ model }) => model)).toEqual([
      'claude-haiku-4-5',
    ]);
    expect(listPrices(NOW, 'nobody')).toEqual([]);
    expect(
      listPrices(NOW, 'bedrock', 'regional.anthropic.claude-haiku').map(({ provider }) => provider),
    ).toEqual(['bedrock']);
  });

  it('every price of the whole list is valid at any hour, and its id stands for these rates alone', async () => {
    const providers = (await waitForUpdate()) ?? [];
    const ids = LISTED_PROVIDERS.map((slug) => listOf(slug)?.id);
    expect([...ids].sort()).toEqual(providers.map(({ id }) => id).sort());
    const times = [
      '2025-01-01T00:00:00Z',
      '2026-11-30T02:00:00Z',
      '2026-11-30T18:00:00Z',
      '2027-06-01T08:00:00Z',
    ];
    const seen = new Map<string, string>();
    for (const time of times) {
      const all = listPrices(Date.parse(time));
      expect(all.length).toBeGreaterThan(1_300);
      for (const price of all) {
        expect([price.model, validateRates(price.rates)]).toEqual([price.model, []]);
        const content = `${price.provider}/${price.model}/${JSON.stringify(price.rates)}`;
        expect(seen.get(price.priceId) ?? content).toBe(content);
        seen.set(price.priceId, content);
      }
    }
  });

  it('agrees with the catalogue’s own arithmetic', () => {
    const at = new Date(NOW);
    for (const [slug, id, model] of [
      ['anthropic', 'anthropic', 'claude-sonnet-4-5'],
      ['openai', 'openai', 'gpt-5.6-sol'],
      ['google', 'google', 'gemini-2.5-pro'],
      ['xai', 'x-ai', 'grok-4.5'],
      ['deepseek', 'deepseek', 'deepseek-chat'],
      ['bedrock', 'aws', 'amazon.nova-pro-v1:0'],
    ] as const) {
      for (const input of [1, 199_999, 200_000, 200_001, 300_000]) {
        const theirs = calcPrice({ input_tokens: input, output_tokens: 777 }, model, {
          providerId: id,
          timestamp: at,
        });
        const ours = priceUsage(parseRates(rates(slug, model)), { inputTokens: input, outputTokens: 777 });
        expect(ours.unpriced).toEqual([]);
        expect(Number(formatMoney(ours.cost))).toBeCloseTo(theirs?.total_price ?? NaN, 8);
      }
    }
  });
});
