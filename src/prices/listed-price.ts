import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ModelPrice, TieredPrices } from '@pydantic/genai-prices';
import { canonicalJson } from '../domain/canonical-json';
import { formatMoney, parseMoney } from '../domain/money';
import { decimalUsd } from '../domain/provider-usage';
import { PRICED_CLASSES } from '../domain/prices';
import type { Price, PricedClass, RateText } from '../domain/prices';
import { TOKEN_CLASSES } from '../domain/usage';

/** The catalogue's price keys, and how many units its figure is for against ours: `per` of them, of 10^shift each. */
const CLASSES: Readonly<
  Record<string, { readonly name: PricedClass; readonly shift?: number; readonly per?: bigint }>
> = {
  input_mtok: { name: 'inputTokens' },
  cache_read_mtok: { name: 'cacheReadTokens' },
  cache_write_mtok: { name: 'cacheWrite5mTokens' },
  cache_write_5m_mtok: { name: 'cacheWrite5mTokens' },
  cache_write_1h_mtok: { name: 'cacheWrite1hTokens' },
  output_mtok: { name: 'outputTokens' },
  input_audio_mtok: { name: 'audioInputTokens' },
  output_audio_mtok: { name: 'audioOutputTokens' },
  // Per thousand there, per piece here.
  web_searches_kcount: { name: 'searches', shift: -3 },
  requests_kcount: { name: 'requests', shift: -3 },
  audio_hours: { name: 'audioSeconds', per: 3_600n },
};

type Rates = Partial<Record<PricedClass, RateText>>;

function installedVersion(): string {
  const folder = dirname(require.resolve('@pydantic/genai-prices'));
  const { version } = JSON.parse(readFileSync(join(folder, '..', 'package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}

const ORIGIN = `@pydantic/genai-prices ${installedVersion()}`;

/** What a listed price is a price of. */
export interface Listed {
  /** The ledger's slug. */
  readonly provider: string;
  readonly model: string;
  readonly prices: ModelPrice;
  /** The catalogue's id of the provider whose list it stands in. */
  readonly list: string;
  /** That list is not the provider's own. */
  readonly borrowed: boolean;
}

const known = new WeakMap<ModelPrice, Map<string, Price>>();

/** The catalogue's price as the ledger has prices. Remembered by the catalogue's own objects, which never change. */
export function priceOf(listed: Listed): Price {
  const name = `${listed.provider}/${listed.model}`;
  const same = known.get(listed.prices) ?? new Map<string, Price>();
  known.set(listed.prices, same);
  const price = same.get(name) ?? toPrice(listed);
  same.set(name, price);
  return price;
}

function toPrice({ provider, model, prices, list, borrowed }: Listed): Price {
  const rates: Rates = {};
  for (const [key, figure] of Object.entries(prices)) {
    const into = Object.hasOwn(CLASSES, key) ? CLASSES[key] : undefined;
    if (into && figure !== undefined) rates[into.name] = rateText(figure, into.shift ?? 0, into.per ?? 1n);
  }
  const notes = derive(rates, prices, list, model);
  if (borrowed) notes.unshift(`from the list of ${list}`);
  const embedding = /embed|\bbge-|rerank|^voyage-/i.test(model);
  const content = canonicalJson({ provider, model, rates });
  return {
    priceId: `cat_${createHash('sha256').update(content).digest('hex').slice(0, 16)}`,
    provider,
    model,
    source: 'catalogue',
    origin: [ORIGIN, ...notes].join('; '),
    rates,
    ...(embedding && { embedding }),
  };
}

function rateText(figure: number | TieredPrices, shift: number, per: bigint): RateText {
  const text = (price: number): string => {
    // Fifteen digits are what a float holds for sure: 0.18000000000000002 was meant as 0.18.
    const whole = decimalUsd(price.toPrecision(15), shift);
    return per === 1n ? whole : formatMoney((parseMoney(whole) + per - 1n) / per);
  };
  if (typeof figure === 'number') return text(figure);
  return {
    base: text(figure.base),
    tiers: figure.tiers.map(({ start, price }) => ({ above: start, rate: text(price) })),
  };
}

/** Adds the rates that the catalogue leaves to be understood, and says which. Never a rate below what is listed. */
function derive(rates: Rates, prices: ModelPrice, list: string, model: string): string[] {
  const notes: string[] = [];
  const { inputTokens, outputTokens, cacheWrite5mTokens } = rates;
  // Anthropic sells one-hour cache writes at twice the input wherever its models run; not every list says so.
  if (/claude/i.test(model) && inputTokens && cacheWrite5mTokens && !rates.cacheWrite1hTokens) {
    rates.cacheWrite1hTokens = twice(inputTokens);
    notes.push('one-hour cache writes taken as 2 × input');
  }
  // Gemini's audio costs what its text does, save where the list has a price for it.
  if (list === 'google' && inputTokens && !rates.audioInputTokens) {
    rates.audioInputTokens = inputTokens;
    notes.push('audio input taken as input');
  }
  if (/\btts\b/.test(model) && outputTokens && !rates.audioOutputTokens) {
    rates.audioOutputTokens = outputTokens;
    notes.push('audio output taken as output');
  }
  // Drawn tokens are counted as output: all of it at their price is better than them at the price of words.
  const drawn = prices['output_image_mtok'] ?? prices['output_video_mtok'];
  if (drawn !== undefined) {
    rates.outputTokens = rateText(drawn, 0, 1n);
    notes.push('all output at the rate of images or video');
  }
  if (list === 'openrouter' && model.endsWith(':free') && Object.keys(prices).length === 0) {
    for (const name of PRICED_CLASSES) if (name !== 'requests' && TOKEN_CLASSES.has(name)) rates[name] = '0';
    notes.push('free, as its name says');
  }
  return notes;
}

function twice(rate: RateText): RateText {
  const text = (figure: string) => formatMoney(parseMoney(figure) * 2n);
  if (typeof rate === 'string') return text(rate);
  return { base: text(rate.base), tiers: rate.tiers.map(({ above, rate: r }) => ({ above, rate: text(r) })) };
}
