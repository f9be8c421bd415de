import type { Family } from './family';
import { inputClasses, outputClasses } from './family';
import type { UsageReader } from './usage-reader';

/** Vertex says how a call was served, not which tier was asked for. */
const TRAFFIC: Readonly<Record<string, string>> = {
  on_demand: 'standard',
  on_demand_flex: 'flex',
  on_demand_priority: 'priority',
  traffic_type_unspecified: 'standard',
};

/**
 * Gemini and Vertex: cached tokens are in the prompt, thoughts are not in the candidates, the prompt of tool use is
 * further input. Read in both spellings, as some of its SDKs write snake case.
 */
export const gemini: Family = {
  knows: (r) => r.has('promptTokenCount') || r.has('prompt_token_count'),
  read: (r) => {
    const name = (camel: string) => (r.has('promptTokenCount') ? camel : snake(camel));
    const count = (camel: string) => r.count(name(camel));
    const audio = (camel: string) => audioOf(r, name(camel), name('tokenCount'));
    // Live sessions call the candidates a response.
    const answered = Math.max(count('candidatesTokenCount'), count('responseTokenCount'));
    const spoken = Math.max(audio('candidatesTokensDetails'), audio('responseTokensDetails'));
    const traffic = r.text(name('trafficType'))?.toLowerCase();
    return {
      counts: {
        ...inputClasses({
          total: count('promptTokenCount') + count('toolUsePromptTokenCount'),
          cached: count('cachedContentTokenCount'),
          audio: audio('promptTokensDetails') + audio('toolUsePromptTokensDetails'),
          cachedAudio: audio('cacheTokensDetails'),
        }),
        ...outputClasses(answered + count('thoughtsTokenCount'), spoken),
      },
      serviceTier: r.text(name('serviceTier')) ?? (traffic && (TRAFFIC[traffic] ?? traffic)),
    };
  },
};

const snake = (camel: string): string => camel.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function audioOf(r: UsageReader, details: string, tokenCount: string): number {
  let tokens = 0;
  for (const detail of r.list(details)) {
    if (detail.text('modality') === 'AUDIO') tokens += detail.count(tokenCount);
  }
  return tokens;
}
