import { findProvider } from '@pydantic/genai-prices';
import type { Provider } from '@pydantic/genai-prices';

/** The ledger's slugs of providers that the catalogue has under another name. */
const CATALOGUE_IDS: Readonly<Record<string, string>> = {
  xai: 'x-ai',
  bedrock: 'aws',
  'amazon-bedrock': 'aws',
  'aws-bedrock': 'aws',
  gemini: 'google',
  vertex: 'google',
  vertexai: 'google',
  'vertex-ai': 'google',
  'google-vertex': 'google',
  'azure-openai': 'azure',
  mistralai: 'mistral',
  moonshot: 'moonshotai',
  'together-ai': 'together',
  togetherai: 'together',
  'fireworks-ai': 'fireworks',
  voyage: 'voyageai',
};

/** Whom the whole list is shown for. The catalogue cannot be asked for its providers; a test compares. */
export const LISTED_PROVIDERS: readonly string[] = [
  ...['anthropic', 'openai', 'azure', 'bedrock', 'google', 'deepseek', 'xai', 'mistral', 'openrouter'],
  ...['arcee', 'avian', 'baseten', 'cerebras', 'cloudflare', 'cohere', 'cursor', 'doubleword', 'fireworks'],
  ...['github-copilot', 'groq', 'huggingface_cerebras', 'huggingface_fireworks-ai', 'huggingface_groq'],
  ...['huggingface_hyperbolic', 'huggingface_nebius', 'huggingface_novita', 'huggingface_nscale'],
  ...['huggingface_ovhcloud', 'huggingface_publicai', 'huggingface_sambanova', 'huggingface_together'],
  ...['minimax', 'modal', 'moonshotai', 'novita', 'ovhcloud', 'perplexity', 'quicksilverpro', 'together'],
  ...['typesafe', 'voyageai', 'zai', 'zhipuai'],
];

/**
 * The catalogue's entry for a provider's slug. Its own search also takes names that merely contain another's
 * ("my-openai-proxy"): those are unknown here, for one provider is never priced by the list of another.
 */
export function listOf(slug: string): Provider | undefined {
  const id = Object.hasOwn(CATALOGUE_IDS, slug) ? CATALOGUE_IDS[slug] : slug;
  const found = findProvider({ providerId: id });
  return found?.id === id ? found : undefined;
}
