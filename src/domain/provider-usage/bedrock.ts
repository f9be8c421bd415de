import type { Family } from './family';

/** Names that others use in camel case: the ledger's own classes, and a client library's input that includes cached. */
const FOREIGN = [
  'cacheReadTokens',
  'cacheWrite5mTokens',
  'cacheWrite1hTokens',
  'cachedInputTokens',
  'inputTokenDetails',
];

/** Bedrock Converse: disjoint; cache writes by time to live where it says so, else five-minute ones. */
export const bedrock: Family = {
  knows: (r) => r.has('inputTokens', 'outputTokens') && !r.mentions(...FOREIGN),
  read: (r) => {
    let hour = 0;
    let short = 0;
    for (const detail of r.list('cacheDetails')) {
      if (detail.text('ttl') === '1h') hour += detail.count('inputTokens');
      else short += detail.count('inputTokens');
    }
    // The older names of the same two counts.
    const writes = Math.max(r.count('cacheWriteInputTokens'), r.count('cacheWriteInputTokenCount'));
    return {
      counts: {
        inputTokens: r.count('inputTokens'),
        cacheReadTokens: Math.max(r.count('cacheReadInputTokens'), r.count('cacheReadInputTokenCount')),
        cacheWrite5mTokens: Math.max(short, writes - hour),
        cacheWrite1hTokens: hour,
        outputTokens: r.count('outputTokens'),
      },
      serviceTier: r.text('serviceTier'),
    };
  },
};
