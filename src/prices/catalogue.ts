import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { calcPrice, findProvider } from '@pydantic/genai-prices';
import type { ModelInfo, ModelPrice, TieredPrices } from '@pydantic/genai-prices';
import { canonicalJson } from '../domain/canonical-json';
import { formatMoney, parseMoney } from '../domain/money';
import { decimalUsd } from '../domain/provider-usage';
import type { Catalogue, CatalogueMatch, Price, PricedClass, RateText } from '../domain/prices';

/** The catalogue's own names of providers, where they are not ours. */
const CATALOGUE_IDS: Readonly<Record<string, string>> = {
  xai: 'x-ai',
  bedrock: 'aws',
  gemini: 'google',
  vertex: 'google',
};

/** Its price keys, and how many units its figure is for against ours. */
const CLASSES: Readonly<Record<string, { readonly name: PricedClass; readonly shift: number }>> = {
  input_mtok: { name: 'inputTokens', shift: 0 },
  cache_read_mtok: { name: 'cacheReadTokens', shift: 0 },
  cache_write_mtok: { name: 'cacheWrite5mTokens', shift: 0 },
  cache_write_1h_mtok: { name: 'cacheWrite1hTokens', shift: 0 },
  output_mtok: { name: 'outputTokens', shift: 0 },
  input_audio_mtok: { name: 'audioInputTokens', shift: 0 },
  output_audio_mtok: { name: 'audioOutputTokens', shift: 0 },
  // Per thousand there, per piece here.
  web_searches_kcount: { name: 'searches', shift: -3 },
  requests_kcount: { name: 'requests', shift: -3 },
};

const MOST_REMEMBERED = 10_000;
const MINUTE_MS = 60_000;

function installedVersion(): string {
  const folder = dirname(require.resolve('@pydantic/genai-prices'));
  const { version } = JSON.parse(readFileSync(join(folder, '..', 'package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}

const ORIGIN = `@pydantic/genai-prices ${installedVersion()}`;

/**
 * The bundled price list as a pure look-up. It never asks the network. Prices that change with the date or the time
 * of day are looked up by the minute, all others once.
 */
export function createCatalogue(): Catalogue {
  const known = new Map<string, CatalogueMatch | null>();
  return (provider, model, atMs) => {
    const name = `${provider}\u0000${model}`;
    const steady = known.get(name);
    if (steady !== undefined) return steady ?? undefined;
    const minute = Math.floor(atMs / MINUTE_MS);
    const timed = `${name}\u0000${minute}`;
    const remembered = known.get(timed);
    if (remembered !== undefined) return remembered ?? undefined;
    const { match, changes } = lookUp(provider, model, minute * MINUTE_MS);
    if (known.size >= MOST_REMEMBERED) known.clear();
    known.set(changes ? timed : name, match ?? null);
    return match;
  };
}

function lookUp(
  provider: string,
  model: string,
  atMs: number,
): { match: CatalogueMatch | undefined; changes: boolean } {
  const listed = findProvider({ providerId: CATALOGUE_IDS[provider] ?? provider });
  if (!listed) return { match: undefined, changes: false };
  const found = calcPrice({ input_tokens: 1 }, model, { provider: listed, timestamp: new Date(atMs) });
  if (!found) return { match: undefined, changes: false };
  const price = priceOf(provider, found.model, found.model_price);
  return { match: { price, exact: found.model.id === model }, changes: Array.isArray(found.model.prices) };
}

function priceOf(provider: string, model: ModelInfo, listed: ModelPrice): Price {
  const rates: Partial<Record<PricedClass, RateText>> = {};
  for (const [key, figure] of Object.entries(listed)) {
    const into = Object.hasOwn(CLASSES, key) ? CLASSES[key] : undefined;
    if (into && figure !== undefined) rates[into.name] = rateText(figure, into.shift);
  }
  const derived = deriveHourCache(model.id, rates);
  const embedding = rates.outputTokens === undefined && /embed/i.test(model.id);
  const content = canonicalJson({ provider, model: model.id, rates });
  return {
    priceId: `cat_${createHash('sha256').update(content).digest('hex').slice(0, 16)}`,
    provider,
    model: model.id,
    source: 'catalogue',
    origin: derived ? `${ORIGIN}; one-hour cache writes taken as 2 × input` : ORIGIN,
    rates: rates,
    ...(embedding && { embedding }),
  };
}

/** Anthropic sells one-hour cache writes at twice the input rate wherever its models run; not every list says so. */
function deriveHourCache(id: string, rates: Partial<Record<PricedClass, RateText>>): boolean {
  const input = rates.inputTokens;
  if (!/claude/i.test(id) || rates.cacheWrite1hTokens !== undefined || rates.cacheWrite5mTokens === undefined)
    return false;
  if (input === undefined) return false;
  const twice = (text: string) => formatMoney(parseMoney(text) * 2n);
  rates.cacheWrite1hTokens =
    typeof input === 'string'
      ? twice(input)
      : {
          base: twice(input.base),
          tiers: input.tiers.map(({ above, rate }) => ({ above, rate: twice(rate) })),
        };
  return true;
}

function rateText(figure: number | TieredPrices, shift: number): RateText {
  if (typeof figure === 'number') return decimalUsd(figure, shift);
  return {
    base: decimalUsd(figure.base, shift),
    tiers: figure.tiers.map(({ start, price }) => ({ above: start, rate: decimalUsd(price, shift) })),
  };
}

/** The list's prices at a moment, for people: of one provider, of names that contain a text. At most a thousand. */
export function listPrices(atMs: number, provider?: string, model?: string): Price[] {
  const providers = provider === undefined ? PROVIDERS : [provider];
  const prices: Price[] = [];
  for (const name of providers) {
    const listed = findProvider({ providerId: CATALOGUE_IDS[name] ?? name });
    for (const info of listed?.models ?? []) {
      if (model !== undefined && !info.id.includes(model)) continue;
      const found = lookUp(name, info.id, atMs).match;
      if (found && prices.length < 1_000) prices.push(found.price);
    }
  }
  return prices;
}

const PROVIDERS = [
  'anthropic',
  'openai',
  'azure',
  'deepseek',
  'google',
  'xai',
  'mistral',
  'openrouter',
  'bedrock',
];
