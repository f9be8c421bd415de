import { existsSync, readFileSync } from 'node:fs';
import { formatMoney } from '../../src/domain/money';
import { parseRates, priceUsage } from '../../src/domain/pricing';
import { normaliseUsage } from '../../src/domain/provider-usage';
import { createCatalogue, listPrices } from '../../src/prices/catalogue';

const NOW = Date.parse('2026-11-30T12:00:00Z');
const catalogue = createCatalogue();
const rates = (provider: string, model: string) => catalogue(provider, model, NOW)?.price.rates ?? {};
const cost = (provider: string, model: string, raw: unknown) => {
  const { usage, faults } = normaliseUsage(provider, raw);
  expect(faults).toEqual([]);
  const priced = priceUsage(parseRates(rates(provider, model)), usage);
  expect(priced.unpriced).toEqual([]);
  return formatMoney(priced.cost);
};

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
});

describe('usage as providers report it', () => {
  it('casebook 19: Anthropic’s cache writes are counted once', () => {
    const raw = {
      input_tokens: 4,
      cache_creation_input_tokens: 12_304,
      cache_read_input_tokens: 0,
      output_tokens: 550,
    };
    expect(normaliseUsage('anthropic', raw).usage).toEqual({
      inputTokens: 4,
      cacheWrite5mTokens: 12_304,
      outputTokens: 550,
    });
    expect(cost('anthropic', 'claude-sonnet-4-5', raw)).toBe('0.054402');
  });

  it('casebook 20: one-hour cache writes are not five-minute ones', () => {
    const raw = {
      input_tokens: 0,
      output_tokens: 0,
      cache_creation_input_tokens: 1_720_000,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 1_720_000 },
    };
    expect(cost('anthropic', 'claude-haiku-4-5', raw)).toBe('3.44');
  });

  it('casebook 21: cached tokens are taken out of the input that includes them', () => {
    const raw = {
      prompt_tokens: 1_000,
      prompt_tokens_details: { cached_tokens: 900 },
      completion_tokens: 10,
      completion_tokens_details: { reasoning_tokens: 4 },
    };
    expect(normaliseUsage('openai', raw).usage).toEqual({
      inputTokens: 100,
      cacheReadTokens: 900,
      outputTokens: 10,
    });
  });

  it.each([
    [
      'OpenAI with audio',
      'openai',
      {
        prompt_tokens: 100,
        prompt_tokens_details: { audio_tokens: 30, cached_tokens: 20 },
        completion_tokens: 50,
        completion_tokens_details: { audio_tokens: 40 },
      },
      { inputTokens: 50, cacheReadTokens: 20, audioInputTokens: 30, outputTokens: 10, audioOutputTokens: 40 },
    ],
    [
      'OpenAI Responses',
      'openai',
      {
        input_tokens: 100,
        input_tokens_details: { cached_tokens: 60 },
        output_tokens: 7,
        output_tokens_details: { reasoning_tokens: 5 },
      },
      { inputTokens: 40, cacheReadTokens: 60, outputTokens: 7 },
    ],
    [
      'DeepSeek',
      'deepseek',
      { prompt_tokens: 100, prompt_cache_hit_tokens: 70, prompt_cache_miss_tokens: 30, completion_tokens: 5 },
      { inputTokens: 30, cacheReadTokens: 70, outputTokens: 5 },
    ],
    [
      'Gemini',
      'google',
      {
        promptTokenCount: 100,
        cachedContentTokenCount: 40,
        candidatesTokenCount: 5,
        thoughtsTokenCount: 9,
        toolUsePromptTokenCount: 3,
      },
      { inputTokens: 63, cacheReadTokens: 40, outputTokens: 14 },
    ],
    [
      'xAI',
      'xai',
      {
        prompt_tokens: 100,
        prompt_tokens_details: { cached_tokens: 60 },
        completion_tokens: 5,
        reasoning_tokens: 20,
      },
      { inputTokens: 40, cacheReadTokens: 60, outputTokens: 25 },
    ],
    [
      'Mistral',
      'mistral',
      { prompt_tokens: 100, completion_tokens: 5, total_tokens: 105 },
      { inputTokens: 100, outputTokens: 5 },
    ],
    [
      'Bedrock',
      'bedrock',
      {
        inputTokens: 10,
        outputTokens: 2,
        cacheReadInputTokens: 3,
        cacheWriteInputTokens: 9,
        cacheDetails: [
          { inputTokens: 4, ttl: '1h' },
          { inputTokens: 5, ttl: '5m' },
        ],
      },
      { inputTokens: 10, outputTokens: 2, cacheReadTokens: 3, cacheWrite5mTokens: 5, cacheWrite1hTokens: 4 },
    ],
    [
      'Anthropic with searches',
      'anthropic',
      { input_tokens: 1, output_tokens: 2, server_tool_use: { web_search_requests: 3 } },
      { inputTokens: 1, outputTokens: 2, searches: 3 },
    ],
  ])('%s', (_name, provider, raw, expected) => {
    expect(normaliseUsage(provider, raw)).toMatchObject({ usage: expected, faults: [] });
    // The shape alone is enough, but for xAI without its cost.
    if (provider !== 'xai') expect(normaliseUsage(undefined, raw).usage).toEqual(expected);
  });

  it('costs that a provider reports become exact decimals', () => {
    expect(
      normaliseUsage('xai', { prompt_tokens: 1, completion_tokens: 1, cost_in_usd_ticks: 1_234_567_890 }),
    ).toMatchObject({ reportedCost: '0.123456789' });
    const byok = {
      prompt_tokens: 1,
      completion_tokens: 1,
      cost: 0.00012,
      is_byok: true,
      cost_details: { upstream_inference_cost: 1e-7 },
    };
    expect(normaliseUsage('openrouter', byok)).toMatchObject({
      reportedCost: '0.00012',
      upstreamCost: '0.0000001',
    });
    expect(normaliseUsage('openrouter', { ...byok, is_byok: false }).upstreamCost).toBeUndefined();
  });

  it('service tiers but the standard one are told', () => {
    expect(
      normaliseUsage('anthropic', { input_tokens: 1, output_tokens: 1, service_tier: 'priority' })
        .serviceTier,
    ).toBe('priority');
    expect(
      normaliseUsage('anthropic', { input_tokens: 1, output_tokens: 1, service_tier: 'standard' })
        .serviceTier,
    ).toBeUndefined();
  });

  it('names every fault, and the fields of a shape nobody knows', () => {
    const bad = { prompt_tokens: -1, completion_tokens: 1.5, prompt_tokens_details: { cached_tokens: 2e9 } };
    expect(
      normaliseUsage('openai', bad)
        .faults.map(({ path }) => path)
        .sort(),
    ).toEqual(['completion_tokens', 'prompt_tokens', 'prompt_tokens_details.cached_tokens']);
    expect(normaliseUsage('openai', { tokens: 5 }).faults).toEqual([
      { path: '', message: 'has no usage of a known provider; fields seen: tokens' },
    ]);
    expect(normaliseUsage('openai', null).faults).toHaveLength(1);
  });
});
