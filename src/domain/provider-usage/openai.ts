import type { Family, Found } from './family';
import { inputClasses, outputClasses } from './family';
import type { UsageReader } from './usage-reader';

/** What a dialect calls its fields. */
interface Dialect {
  readonly input: string;
  readonly inputDetails: string;
  readonly output: string;
  readonly outputDetails: string;
}

const CHAT: Dialect = {
  input: 'prompt_tokens',
  inputDetails: 'prompt_tokens_details',
  output: 'completion_tokens',
  outputDetails: 'completion_tokens_details',
};
const RESPONSES: Dialect = {
  input: 'input_tokens',
  inputDetails: 'input_tokens_details',
  output: 'output_tokens',
  outputDetails: 'output_tokens_details',
};
/** Realtime sessions and transcriptions write the details in the singular. */
const REALTIME: Dialect = {
  ...RESPONSES,
  inputDetails: 'input_token_details',
  outputDetails: 'output_token_details',
};

/** OpenAI's chat shape, and those of Azure, Mistral, xAI and OpenRouter, which build on it; embeddings too. */
export const chat: Family = {
  knows: (r) => r.has('prompt_tokens'),
  read: (r, provider) => readDialect(r, provider, CHAT),
};

/** OpenAI's Responses, realtime and transcription shapes. */
export const responses: Family = {
  knows: (r) => r.has('input_tokens'),
  read: (r, provider) =>
    readDialect(
      r,
      provider,
      r.mentions('input_token_details', 'output_token_details') ? REALTIME : RESPONSES,
    ),
};

/** DeepSeek: the prompt is cache hits and misses. */
export const deepseek: Family = {
  knows: (r) => r.has('prompt_cache_hit_tokens'),
  read: (r) => {
    const hit = r.count('prompt_cache_hit_tokens');
    const miss = r.count('prompt_cache_miss_tokens');
    return {
      counts: {
        inputTokens: Math.max(miss, r.count('prompt_tokens') - hit),
        cacheReadTokens: hit,
        outputTokens: r.count('completion_tokens'),
      },
      serviceTier: r.text('service_tier'),
    };
  },
};

/** Speech that is billed by its length. */
export const duration: Family = {
  knows: (r) => r.has('seconds') && r.text('type') === 'duration',
  read: (r) => ({ counts: { audioSeconds: r.seconds('seconds') } }),
};

function readDialect(r: UsageReader, provider: string, names: Dialect): Found {
  const { inputDetails, outputDetails } = names;
  const total = r.count(names.input);
  const output = r.count(names.output);
  return {
    counts: {
      ...inputClasses({
        total,
        cached: r.has(inputDetails)
          ? r.count(inputDetails, 'cached_tokens')
          : // Moonshot has no details.
            r.count('cached_tokens'),
        written: r.count(inputDetails, 'cache_write_tokens'),
        audio: r.count(inputDetails, 'audio_tokens'),
        cachedAudio: r.count(inputDetails, 'cached_tokens_details', 'audio_tokens'),
      }),
      ...outputClasses(
        output + outputLeftOut(r, provider, outputDetails, total, output),
        r.count(outputDetails, 'audio_tokens'),
      ),
      searches: r.count('server_tool_use', 'web_search_requests'),
      audioSeconds: r.seconds('prompt_audio_seconds'),
    },
    serviceTier: r.text('service_tier'),
  };
}

/**
 * Output tokens that the provider bills beside those it calls output. Its total tells, where it gives one: reasoning
 * that makes input and output add up to it was left out. Without a total xAI leaves reasoning out, the others do not.
 * Google's own OpenAI-like shape leaves thoughts out without naming them: there the gap itself is output.
 */
function outputLeftOut(
  r: UsageReader,
  provider: string,
  outputDetails: string,
  input: number,
  output: number,
): number {
  const reasoning = Math.max(r.count('reasoning_tokens'), r.count(outputDetails, 'reasoning_tokens'));
  const total = r.count('total_tokens');
  if (total === input + output) return 0;
  if (total === input + output + reasoning) return reasoning;
  if (/^(google|gemini|vertex)/.test(provider)) return Math.max(0, total - input - output);
  return /^x-?ai$/.test(provider) || r.has('cost_in_usd_ticks') ? reasoning : 0;
}
