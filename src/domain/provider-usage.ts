import { MAX_COUNT } from './usage';
import type { Usage, UsageClass } from './usage';

export interface UsageFault {
  readonly path: string;
  readonly message: string;
}

/** A provider's usage object in the ledger's own words. */
export interface NormalisedUsage {
  readonly usage: Usage;
  /** Decimal USD. */
  readonly reportedCost?: string;
  readonly upstreamCost?: string;
  /** Absent for the standard tier. */
  readonly serviceTier?: string;
  readonly faults: readonly UsageFault[];
}

/**
 * Brings a provider's usage object into disjoint classes (DESIGN 9): where its input includes cached tokens they are
 * taken out, where its output leaves reasoning out it is added. The shape decides, the provider where shapes are alike.
 * Counts that are no whole numbers from 0 to 10⁹ are faults, as is a shape nobody knows.
 */
export function normaliseUsage(provider: string | undefined, raw: unknown): NormalisedUsage {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    return { usage: {}, faults: [{ path: '', message: 'is not an object' }] };
  }
  const reader = new Reader(raw as Fields);
  const family = FAMILIES.find((candidate) => candidate.knows(reader));
  if (!family) {
    const names = Object.keys(raw)
      .filter((name) => /^[A-Za-z_]{1,40}$/.test(name))
      .slice(0, 20);
    return {
      usage: {},
      faults: [{ path: '', message: `has no usage of a known provider; fields seen: ${names.join(', ')}` }],
    };
  }
  const found = family.read(reader, provider);
  const counts = Object.entries(found.counts).filter(([, count]) => count > 0);
  return {
    usage: Object.fromEntries(counts),
    reportedCost: found.reportedCost,
    upstreamCost: found.upstreamCost,
    serviceTier: standardTier(reader.text('service_tier')),
    faults: reader.faults,
  };
}

type Fields = Readonly<Record<string, unknown>>;
type Counts = Partial<Record<UsageClass, number>>;

interface Found {
  readonly counts: Counts;
  readonly reportedCost?: string;
  readonly upstreamCost?: string;
}

interface Family {
  knows(reader: Reader): boolean;
  read(reader: Reader, provider: string | undefined): Found;
}

/** Reads fields by path and collects what is wrong with them. */
class Reader {
  readonly faults: UsageFault[] = [];

  constructor(private readonly fields: Fields) {}

  has(...names: string[]): boolean {
    return names.every((name) => this.fields[name] !== undefined && this.fields[name] !== null);
  }

  /** A count, 0 where it is absent. */
  count(...path: string[]): number {
    const value = this.at(path);
    if (value === undefined || value === null) return 0;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > MAX_COUNT) {
      this.faults.push({ path: path.join('.'), message: `is not a whole number from 0 to ${MAX_COUNT}` });
      return 0;
    }
    return value;
  }

  text(...path: string[]): string | undefined {
    const value = this.at(path);
    return typeof value === 'string' ? value : undefined;
  }

  flag(...path: string[]): boolean {
    return this.at(path) === true;
  }

  /** A cost in dollars, of a float or a text; undefined where absent. */
  cost(divisorDigits: number, ...path: string[]): string | undefined {
    const value = this.at(path);
    if (value === undefined || value === null) return undefined;
    const figure = typeof value === 'string' ? Number(value) : value;
    if (
      typeof figure !== 'number' ||
      !Number.isFinite(figure) ||
      figure < 0 ||
      figure / 10 ** divisorDigits > 1e6
    ) {
      this.faults.push({ path: path.join('.'), message: 'is not a cost' });
      return undefined;
    }
    return decimalUsd(figure, -divisorDigits);
  }

  list(...path: string[]): Reader[] {
    const value = this.at(path);
    return Array.isArray(value) ? value.map((item: unknown) => new Reader((item ?? {}) as Fields)) : [];
  }

  private at(path: readonly string[]): unknown {
    let value: unknown = this.fields;
    for (const name of path) {
      if (typeof value !== 'object' || value === null) return undefined;
      value = (value as Fields)[name];
    }
    return value;
  }
}

/** The shortest decimal of a float with its point moved, at most nine decimals, rounded up: no float holds money. */
export function decimalUsd(figure: number, shift: number): string {
  const [mantissa = '0', exponent = '0'] = figure.toExponential().split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  const scale = Number(exponent) - fraction.length + shift + 9;
  const digits = BigInt(whole + fraction);
  const divisor = scale >= 0 ? 1n : 10n ** BigInt(-scale);
  const nanos = scale >= 0 ? digits * 10n ** BigInt(scale) : (digits + divisor - 1n) / divisor;
  const text = nanos.toString().padStart(10, '0');
  return `${text.slice(0, -9)}.${text.slice(-9)}`.replace(/\.?0+$/, '');
}

const STANDARD = new Set(['standard', 'default', 'auto', 'on_demand']);
const standardTier = (tier: string | undefined): string | undefined =>
  tier === undefined || STANDARD.has(tier) ? undefined : tier;

/** What is left of a total once its parts are taken out; a provider that reports more parts than total gets 0. */
const rest = (total: number, ...parts: number[]): number =>
  Math.max(
    0,
    parts.reduce((left, part) => left - part, total),
  );

/** Anthropic: classes are disjoint already; the legacy total of cache writes is all five-minute ones. */
const anthropic: Family = {
  knows: (r) =>
    r.has('input_tokens', 'output_tokens') &&
    ['cache_creation_input_tokens', 'cache_read_input_tokens', 'cache_creation', 'server_tool_use'].some(
      (name) => r.has(name),
    ),
  read: (r) => {
    const total = r.count('cache_creation_input_tokens');
    const hour = r.count('cache_creation', 'ephemeral_1h_input_tokens');
    const short = r.count('cache_creation', 'ephemeral_5m_input_tokens');
    return {
      counts: {
        inputTokens: r.count('input_tokens'),
        cacheReadTokens: r.count('cache_read_input_tokens'),
        cacheWrite5mTokens: short + rest(total, short, hour),
        cacheWrite1hTokens: hour,
        outputTokens: r.count('output_tokens'),
        searches: r.count('server_tool_use', 'web_search_requests'),
      },
    };
  },
};

/** Bedrock Converse: disjoint; cache writes by time to live where it says so. */
const bedrock: Family = {
  knows: (r) => r.has('inputTokens', 'outputTokens'),
  read: (r) => {
    const hour = r
      .list('cacheDetails')
      .reduce((sum, detail) => sum + (detail.text('ttl') === '1h' ? detail.count('inputTokens') : 0), 0);
    const writes = r.count('cacheWriteInputTokens') || r.count('cacheWriteInputTokenCount');
    return {
      counts: {
        inputTokens: r.count('inputTokens'),
        cacheReadTokens: r.count('cacheReadInputTokens') || r.count('cacheReadInputTokenCount'),
        cacheWrite5mTokens: rest(writes, hour),
        cacheWrite1hTokens: hour,
        outputTokens: r.count('outputTokens'),
      },
    };
  },
};

/** Gemini: cached tokens are in the prompt, thoughts are not in the candidates, tool-use prompt is further input. */
const gemini: Family = {
  knows: (r) => r.has('promptTokenCount'),
  read: (r) => {
    const cached = r.count('cachedContentTokenCount');
    return {
      counts: {
        inputTokens: rest(r.count('promptTokenCount'), cached) + r.count('toolUsePromptTokenCount'),
        cacheReadTokens: cached,
        outputTokens: r.count('candidatesTokenCount') + r.count('thoughtsTokenCount'),
      },
    };
  },
};

/** DeepSeek: the prompt is cache hits and misses. */
const deepseek: Family = {
  knows: (r) => r.has('prompt_cache_hit_tokens'),
  read: (r) => {
    const hit = r.count('prompt_cache_hit_tokens');
    const miss = r.has('prompt_cache_miss_tokens')
      ? r.count('prompt_cache_miss_tokens')
      : rest(r.count('prompt_tokens'), hit);
    return {
      counts: { inputTokens: miss, cacheReadTokens: hit, outputTokens: r.count('completion_tokens') },
    };
  },
};

/** OpenAI's chat shape, and those of Azure, Mistral, xAI and OpenRouter, which build on it. */
const chat: Family = {
  knows: (r) => r.has('prompt_tokens'),
  read: (r, provider) => {
    const counts = openAiCounts(
      r,
      'prompt_tokens',
      'prompt_tokens_details',
      'completion_tokens',
      'completion_tokens_details',
    );
    const isXai = provider === 'xai' || r.has('cost_in_usd_ticks');
    const reasoning = r.has('reasoning_tokens')
      ? r.count('reasoning_tokens')
      : r.count('completion_tokens_details', 'reasoning_tokens');
    // xAI leaves reasoning out of its completion tokens.
    if (isXai) counts.outputTokens = (counts.outputTokens ?? 0) + reasoning;
    const reportedCost = isXai ? r.cost(10, 'cost_in_usd_ticks') : r.cost(0, 'cost');
    const upstreamCost = r.flag('is_byok') ? r.cost(0, 'cost_details', 'upstream_inference_cost') : undefined;
    return { counts, reportedCost, upstreamCost };
  },
};

/** OpenAI Responses and embeddings-like objects; Anthropic's without any cache fields reads the same. */
const responses: Family = {
  knows: (r) => r.has('input_tokens'),
  read: (r) => ({
    counts: openAiCounts(r, 'input_tokens', 'input_tokens_details', 'output_tokens', 'output_tokens_details'),
  }),
};

function openAiCounts(
  r: Reader,
  input: string,
  inputDetails: string,
  output: string,
  outputDetails: string,
): Counts {
  const cached = r.count(inputDetails, 'cached_tokens');
  const written = r.count(inputDetails, 'cache_write_tokens');
  const audioIn = r.count(inputDetails, 'audio_tokens');
  const audioOut = r.count(outputDetails, 'audio_tokens');
  return {
    inputTokens: rest(r.count(input), cached, written, audioIn),
    cacheReadTokens: cached,
    cacheWrite5mTokens: written,
    audioInputTokens: audioIn,
    outputTokens: rest(r.count(output), audioOut),
    audioOutputTokens: audioOut,
  };
}

const FAMILIES: readonly Family[] = [deepseek, anthropic, bedrock, gemini, chat, responses];
