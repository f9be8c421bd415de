import { USAGE_CLASSES } from '../usage';
import type { Counts, Family, Found } from './family';
import type { UsageReader } from './usage-reader';

const OWN_FIELDS = [
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'cache_creation',
  'server_tool_use',
  'iterations',
  'inference_geo',
  'speed',
];

/**
 * Anthropic Messages, also by way of Vertex and Bedrock's InvokeModel. Its classes are disjoint already. The total of
 * cache writes contains the 5m and 1h ones (casebook 19); what neither names, as in the old shape without a
 * breakdown, is a five-minute write. The input of a compaction is in no total, only in `iterations`.
 * An advisor's iteration ran on another model at another price: it is a charge of its own, not part of this one.
 */
export const anthropic: Family = {
  knows: (r, provider) =>
    r.has('input_tokens', 'output_tokens') &&
    !r.mentions('input_tokens_details', 'input_token_details') &&
    (provider === 'anthropic' || r.mentions(...OWN_FIELDS)),
  read: (r): Found => {
    const counts = messageCounts(r);
    counts.searches = r.count('server_tool_use', 'web_search_requests');
    for (const iteration of r.list('iterations')) {
      if (iteration.text('type') !== 'compaction') continue;
      const further = messageCounts(iteration);
      for (const name of USAGE_CLASSES) counts[name] = (counts[name] ?? 0) + (further[name] ?? 0);
    }
    return { counts, serviceTier: r.text('speed') === 'fast' ? 'fast' : r.text('service_tier') };
  },
};

function messageCounts(r: UsageReader): Counts {
  const total = r.count('cache_creation_input_tokens');
  const hour = r.count('cache_creation', 'ephemeral_1h_input_tokens');
  const short = r.count('cache_creation', 'ephemeral_5m_input_tokens');
  return {
    inputTokens: r.count('input_tokens'),
    cacheReadTokens: r.count('cache_read_input_tokens'),
    cacheWrite5mTokens: Math.max(short, total - hour),
    cacheWrite1hTokens: hour,
    outputTokens: r.count('output_tokens'),
  };
}
