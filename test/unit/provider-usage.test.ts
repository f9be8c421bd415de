import fc from 'fast-check';
import { formatMoney } from '../../src/domain/money';
import { parseRates, priceUsage } from '../../src/domain/pricing';
import { decimalUsd, normaliseUsage } from '../../src/domain/provider-usage';
import { MAX_COUNT } from '../../src/domain/usage';
import { createCatalogue } from '../../src/prices/catalogue';

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

  it('casebook 21: 0.34 and not 1.68 for a prompt that was mostly cached', () => {
    const price = parseRates({ inputTokens: '1', cacheReadTokens: '0.2', outputTokens: '5' });
    const raw = {
      prompt_tokens: 1_680_000,
      prompt_tokens_details: { cached_tokens: 1_675_000 },
      completion_tokens: 0,
    };
    expect(formatMoney(priceUsage(price, normaliseUsage('openai', raw).usage).cost)).toBe('0.34');
    expect(formatMoney(priceUsage(price, { inputTokens: 1_680_000 }).cost)).toBe('1.68');
  });

  it('Anthropic: what no breakdown names is a five-minute write, and nulls are absent', () => {
    const write = (total: number | null, breakdown: object | null) =>
      normaliseUsage('anthropic', {
        input_tokens: 1,
        output_tokens: 1,
        cache_creation_input_tokens: total,
        cache_read_input_tokens: null,
        cache_creation: breakdown,
        server_tool_use: null,
        service_tier: null,
      });
    expect(write(100, { ephemeral_5m_input_tokens: 40, ephemeral_1h_input_tokens: 60 }).usage).toEqual({
      inputTokens: 1,
      cacheWrite5mTokens: 40,
      cacheWrite1hTokens: 60,
      outputTokens: 1,
    });
    expect(write(100, { ephemeral_1h_input_tokens: 60 }).usage.cacheWrite5mTokens).toBe(40);
    expect(write(0, { ephemeral_5m_input_tokens: 40 }).usage.cacheWrite5mTokens).toBe(40);
    expect(write(null, null)).toMatchObject({ usage: { inputTokens: 1, outputTokens: 1 }, faults: [] });
  });

  it('Anthropic: a compaction is billed on top of the totals, an advisor’s tokens are not this model’s', () => {
    const raw = {
      input_tokens: 23_000,
      output_tokens: 1_000,
      cache_read_input_tokens: 0,
      iterations: [
        { type: 'compaction', input_tokens: 180_000, output_tokens: 3_500, cache_read_input_tokens: 7 },
        { type: 'message', input_tokens: 23_000, output_tokens: 1_000 },
        { type: 'advisor_message', input_tokens: 9, output_tokens: 9, model: 'other' },
      ],
    };
    expect(normaliseUsage('anthropic', raw)).toMatchObject({
      usage: { inputTokens: 203_000, cacheReadTokens: 7, outputTokens: 4_500 },
      faults: [],
    });
  });

  it('reads the aborted stream’s placeholder as what was seen, and the delta without input as no usage', () => {
    const start = { input_tokens: 55_586, cache_read_input_tokens: 0, output_tokens: 1 };
    expect(normaliseUsage('anthropic', start).usage).toEqual({ inputTokens: 55_586, outputTokens: 1 });
    expect(normaliseUsage('anthropic', { output_tokens: 15 }).faults).toEqual([
      { path: '', message: 'has no usage of a known provider; fields seen: output_tokens' },
    ]);
  });

  it('xAI’s total tells whether reasoning was left out of the output; without one it was', () => {
    const raw = {
      prompt_tokens: 12,
      completion_tokens: 1,
      completion_tokens_details: { reasoning_tokens: 386 },
    };
    const output = (provider: string, total?: number) =>
      normaliseUsage(provider, { ...raw, total_tokens: total }).usage.outputTokens;
    expect(output('xai', 399)).toBe(387);
    expect(output('xai')).toBe(387);
    expect(output('someone-elses-grok', 399)).toBe(387);
    const inside = { ...raw, completion_tokens: 387 };
    expect(normaliseUsage('xai', { ...inside, total_tokens: 399 }).usage.outputTokens).toBe(387);
    expect(normaliseUsage('openai', inside).usage.outputTokens).toBe(387);
  });

  it('the gap in the total of Google’s OpenAI-like shape is thinking', () => {
    const raw = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 115 };
    expect(normaliseUsage('google', raw).usage).toEqual({ inputTokens: 10, outputTokens: 105 });
    expect(normaliseUsage('openai', raw).usage).toEqual({ inputTokens: 10, outputTokens: 5 });
  });

  it('Gemini and Vertex: audio apart from text, in either spelling, with the tier that was served', () => {
    const raw = {
      promptTokenCount: 1_000,
      cachedContentTokenCount: 400,
      candidatesTokenCount: 50,
      thoughtsTokenCount: 9,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 300 },
        { modality: 'AUDIO', tokenCount: 700 },
      ],
      cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 400 }],
      candidatesTokensDetails: [{ modality: 'AUDIO', tokenCount: 20 }],
      trafficType: 'ON_DEMAND_FLEX',
    };
    const usage = {
      inputTokens: 300,
      cacheReadTokens: 400,
      audioInputTokens: 300,
      outputTokens: 39,
      audioOutputTokens: 20,
    };
    expect(normaliseUsage('vertex', raw)).toMatchObject({ usage, serviceTier: 'flex', faults: [] });
    expect(normaliseUsage('google', { ...raw, trafficType: 'ON_DEMAND' }).serviceTier).toBeUndefined();
    const snake = {
      prompt_token_count: 100,
      cached_content_token_count: 40,
      candidates_token_count: 5,
      thoughts_token_count: 9,
      tool_use_prompt_token_count: 3,
      prompt_tokens_details: [{ modality: 'AUDIO', token_count: 8 }],
    };
    expect(normaliseUsage('google', snake).usage).toEqual({
      inputTokens: 55,
      cacheReadTokens: 40,
      audioInputTokens: 8,
      outputTokens: 14,
    });
  });

  it('OpenAI realtime: cached audio is cached, the rest of the audio is not', () => {
    const raw = {
      total_tokens: 220,
      input_tokens: 120,
      output_tokens: 100,
      input_token_details: {
        text_tokens: 20,
        audio_tokens: 100,
        cached_tokens: 64,
        cached_tokens_details: { text_tokens: 0, audio_tokens: 64 },
      },
      output_token_details: { text_tokens: 10, audio_tokens: 90 },
    };
    expect(normaliseUsage('openai', raw).usage).toEqual({
      inputTokens: 20,
      cacheReadTokens: 64,
      audioInputTokens: 36,
      outputTokens: 10,
      audioOutputTokens: 90,
    });
  });

  it('speech by its length, rounded up to the second', () => {
    expect(normaliseUsage('openai', { type: 'duration', seconds: 12.3 }).usage).toEqual({ audioSeconds: 13 });
    const voxtral = { prompt_tokens: 4, completion_tokens: 2, total_tokens: 6, prompt_audio_seconds: 203 };
    expect(normaliseUsage('mistral', voxtral).usage).toEqual({
      inputTokens: 4,
      outputTokens: 2,
      audioSeconds: 203,
    });
    expect(normaliseUsage('openai', { type: 'duration', seconds: NaN }).faults).toEqual([
      { path: 'seconds', message: 'is not a number from 0 to 1000000000' },
    ]);
  });

  it('cached tokens beyond the total are beside it: none is lost', () => {
    const raw = { prompt_tokens: 10, prompt_tokens_details: { cached_tokens: 90 }, completion_tokens: 1 };
    expect(normaliseUsage('openai', raw)).toMatchObject({
      usage: { inputTokens: 10, cacheReadTokens: 90, outputTokens: 1 },
      faults: [],
    });
  });

  it('OpenAI’s and OpenRouter’s cache writes are taken out of the input too', () => {
    const raw = {
      prompt_tokens: 100,
      prompt_tokens_details: { cached_tokens: 30, cache_write_tokens: 20 },
      completion_tokens: 1,
      server_tool_use: { web_search_requests: 2 },
    };
    expect(normaliseUsage('openrouter', raw).usage).toEqual({
      inputTokens: 50,
      cacheReadTokens: 30,
      cacheWrite5mTokens: 20,
      outputTokens: 1,
      searches: 2,
    });
    expect(
      normaliseUsage('moonshotai', { prompt_tokens: 9, cached_tokens: 4, completion_tokens: 1 }).usage,
    ).toEqual({
      inputTokens: 5,
      cacheReadTokens: 4,
      outputTokens: 1,
    });
  });

  it('Bedrock: details beyond the total stand, and a fault in one of them is named', () => {
    const raw = (details: unknown) => ({
      inputTokens: 1,
      outputTokens: 1,
      totalTokens: 2,
      cacheDetails: details,
    });
    expect(normaliseUsage('bedrock', raw([{ inputTokens: 5, ttl: '5m' }])).usage.cacheWrite5mTokens).toBe(5);
    expect(normaliseUsage('bedrock', raw([{ inputTokens: -5, ttl: '1h' }, 7])).faults).toEqual([
      { path: 'cacheDetails.1', message: 'is not an object' },
      { path: 'cacheDetails.0.inputTokens', message: 'is not a whole number from 0 to 1000000000' },
    ]);
  });

  it('Bedrock: details that are no list, or too long a one, are one fault and not dropped', () => {
    const message = 'is not a list of at most 1000 items';
    for (const cacheDetails of ['x', Array.from({ length: 1_001 }, () => ({ ttl: '1h', inputTokens: 1 }))]) {
      expect(normaliseUsage('bedrock', { inputTokens: 1, outputTokens: 1, cacheDetails }).faults).toEqual([
        { path: 'cacheDetails', message },
      ]);
    }
    const bad = Array.from({ length: 1_000 }, () => 0);
    expect(
      normaliseUsage('bedrock', { inputTokens: 1, outputTokens: 1, cacheDetails: bad }).faults,
    ).toHaveLength(100);
  });

  it('the ledger’s own classes are not taken for Bedrock’s, which would lose the cached ones', () => {
    const own = { inputTokens: 1, cacheReadTokens: 2, outputTokens: 3 };
    expect(normaliseUsage('bedrock', own).faults).toHaveLength(1);
  });

  it('an own upstream key is told by its flag, or by a cost above the fee', () => {
    const raw = {
      prompt_tokens: 194,
      completion_tokens: 2,
      cost: 0.95,
      cost_details: { upstream_inference_cost: 19 },
    };
    expect(normaliseUsage('openrouter', raw)).toMatchObject({ reportedCost: '0.95', upstreamCost: '19' });
    const resold = { ...raw, cost_details: { upstream_inference_cost: 0.95 } };
    expect(normaliseUsage('openrouter', resold).upstreamCost).toBeUndefined();
  });

  it.each([
    ['a negative cost', { cost: -0.1 }],
    ['a cost that is no number', { cost: 'free' }],
    ['an empty cost', { cost: '' }],
    ['a cost without end', { cost: Infinity }],
    ['a cost above a million', { cost: 1_000_001 }],
    ['ticks above a million dollars', { cost_in_usd_ticks: 1e17 }],
  ])('%s is a fault', (_name, fields) => {
    const raw = { prompt_tokens: 1, completion_tokens: 1, ...fields };
    expect(normaliseUsage('openrouter', raw).faults).toEqual([
      { path: Object.keys(fields)[0], message: 'is not an amount from 0 to 1000000 USD' },
    ]);
  });

  it.each([
    [0.0123, '0.0123'],
    ['0.1', '0.1'],
    ['1e-7', '0.0000001'],
    [1.5e-7, '0.00000015'],
    [1e-12, '0.000000001'],
    [0.1234567891, '0.12345679'],
    [0.1 + 0.2, '0.300000001'],
    [0, '0'],
    [1e6, '1000000'],
  ])('the figure %s is %s', (figure, text) => {
    expect(decimalUsd(figure, 0)).toBe(text);
  });

  it('Perplexity’s cost is its total; fast calls and odd tiers do not pass as standard', () => {
    const raw = { prompt_tokens: 1, completion_tokens: 1, cost: { request_cost: 0.005, total_cost: 0.006 } };
    expect(normaliseUsage('perplexity', raw)).toMatchObject({ reportedCost: '0.006', faults: [] });
    const fast = { input_tokens: 1, output_tokens: 1, service_tier: 'standard', speed: 'fast' };
    expect(normaliseUsage('anthropic', fast).serviceTier).toBe('fast');
    expect(normaliseUsage('openai', { prompt_tokens: 1, service_tier: 'a b\u0000' }).faults).toEqual([
      { path: 'service_tier', message: 'is not a service tier' },
    ]);
  });

  it('counts that only together exceed the bound are a fault', () => {
    const raw = { promptTokenCount: MAX_COUNT, toolUsePromptTokenCount: 1, candidatesTokenCount: 1 };
    expect(normaliseUsage('google', raw).faults).toEqual([
      { path: '', message: 'adds up to more than 1000000000 inputTokens' },
    ]);
  });

  it('names no value of what it could not read', () => {
    const { faults } = normaliseUsage('openai', {
      prompt: 'my secret',
      'sk-live-key': 'x',
      prompt_tokenz: 3,
    });
    expect(faults).toEqual([
      { path: '', message: 'has no usage of a known provider; fields seen: prompt, prompt_tokenz' },
    ]);
  });

  it('whatever it is given, it answers with whole counts from 1 to 10⁹ or with faults', () => {
    const names = [
      'prompt_tokens',
      'input_tokens',
      'inputTokens',
      'promptTokenCount',
      'prompt_cache_hit_tokens',
    ];
    const more = [
      'output_tokens',
      'outputTokens',
      'completion_tokens',
      'candidatesTokenCount',
      'cached_tokens',
    ];
    const nested = [
      'prompt_tokens_details',
      'cache_creation',
      'cacheDetails',
      'iterations',
      'cost',
      'total_tokens',
    ];
    const value = fc.oneof(
      fc.nat(2_000),
      fc.integer({ min: -5, max: 2_000_000_000 }),
      fc.double(),
      fc.constant(null),
      fc.string(),
      fc.jsonValue(),
      fc.record({ cached_tokens: fc.nat(5_000), audio_tokens: fc.nat(5_000) }),
    );
    const raw = fc.dictionary(fc.constantFrom(...names, ...more, ...nested), value);
    fc.assert(
      fc.property(fc.constantFrom('openai', 'xai', 'anthropic', 'google', ''), raw, (provider, fields) => {
        const { usage, reportedCost } = normaliseUsage(provider, fields);
        for (const count of Object.values(usage)) {
          expect(Number.isInteger(count) && count > 0 && count <= MAX_COUNT).toBe(true);
        }
        if (reportedCost !== undefined) expect(reportedCost).toMatch(/^\d+(\.\d{1,9})?$/);
      }),
    );
  });
});
