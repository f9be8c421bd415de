import type { EstimateRequest } from './commands';
import { MAX_AMOUNT, isMoney, money, parseMoney } from './money';
import type { Money } from './money';
import { PRICED_CLASSES } from './prices';
import type { Price, PricedClass, Rate, RateText, Rates, RatesText } from './prices';
import { TOKEN_CLASSES, USAGE_CLASSES } from './usage';
import type { Usage, UsageClass } from './usage';

const MILLION = 1_000_000n;
const perMillion = (name: PricedClass, text: string): bigint =>
  name !== 'requests' && TOKEN_CLASSES.has(name) ? parseMoney(text) : parseMoney(text) * MILLION;

const read = new WeakMap<RatesText, Rates>();

/** Rates in nano-dollars per million units. Remembers what it read: hot paths ask for the same text again. */
export function parseRates(text: RatesText): Rates {
  const known = read.get(text);
  if (known) return known;
  const rates: Partial<Record<PricedClass, Rate>> = {};
  for (const name of PRICED_CLASSES) {
    const rate = text[name];
    if (rate !== undefined) rates[name] = parseRate(name, rate);
  }
  read.set(text, rates);
  return rates;
}

function parseRate(name: PricedClass, text: RateText): Rate {
  if (typeof text === 'string') return { base: perMillion(name, text), tiers: [] };
  const tiers = text.tiers.map(({ above, rate }) => ({ above, rate: perMillion(name, rate) }));
  return { base: perMillion(name, text.base), tiers: tiers.sort((a, b) => a.above - b.above) };
}

/** Tiers go by all that went in, cached or not. */
const totalInput = (usage: Usage): number =>
  (usage.inputTokens ?? 0) +
  (usage.cacheReadTokens ?? 0) +
  (usage.cacheWrite5mTokens ?? 0) +
  (usage.cacheWrite1hTokens ?? 0) +
  (usage.audioInputTokens ?? 0);

/** The rate of the highest tier that the input exceeds: the whole request is priced at it. */
function rateFor(rate: Rate, input: number): bigint {
  let chosen = rate.base;
  for (const tier of rate.tiers) if (input > tier.above) chosen = tier.rate;
  return chosen;
}

export interface PricedUsage {
  /** What could be priced, rounded up to the nano-dollar once over the whole sum. */
  readonly cost: Money;
  /** Classes with a count and without a rate: never free (casebook 21). Zero is a price. */
  readonly unpriced: UsageClass[];
}

/** The exact cost of usage. `requests` counts flat fees, where the model has one. */
export function priceUsage(
  rates: Rates,
  usage: Usage,
  { requests = 0 }: { requests?: number } = {},
): PricedUsage {
  const input = totalInput(usage);
  const unpriced: UsageClass[] = [];
  let sum = 0n;
  for (const name of USAGE_CLASSES) {
    const count = usage[name];
    if (count === undefined || count === 0) continue;
    const rate = rates[name];
    if (rate) sum += BigInt(count) * rateFor(rate, input);
    else unpriced.push(name);
  }
  if (rates.requests && requests > 0) sum += BigInt(requests) * rateFor(rates.requests, input);
  return { cost: money((sum + MILLION - 1n) / MILLION), unpriced };
}

const STANDARD_TIERS: ReadonlySet<string> = new Set(['standard', 'default', 'auto']);

/** The rates of a service tier; undefined where the price has none for it (they are never those of another). */
export function ratesFor(price: Price, serviceTier: string | undefined): RatesText | undefined {
  if (serviceTier === undefined || STANDARD_TIERS.has(serviceTier)) return price.rates;
  const tiers = price.serviceTiers;
  return tiers && Object.hasOwn(tiers, serviceTier) ? tiers[serviceTier] : undefined;
}

export interface EstimateRules {
  readonly minOutputTokens: number;
  readonly rates: Rates;
  readonly embedding: boolean;
}

/**
 * The pessimistic usage of an attempt (RULES 2.4): input as counted, else ceil(characters / 4); output at least the
 * minimum, none for embeddings; input as a cache write where the caller writes a cache and that costs more.
 */
export function estimateUsage(
  request: EstimateRequest,
  { minOutputTokens, rates, embedding }: EstimateRules,
): Usage {
  const input = request.inputTokens ?? Math.ceil((request.inputChars ?? 0) / 4);
  const total = input + (request.audioInputTokens ?? 0);
  const usage: Partial<Record<UsageClass, number>> = {
    [inputClass(request.cacheWrite, rates, total)]: input,
  };
  usage.outputTokens = embedding ? 0 : Math.max(request.maxOutputTokens ?? 0, minOutputTokens);
  for (const name of ANNOUNCED) {
    const count = request[name];
    if (count !== undefined && count > 0) usage[name] = count;
  }
  return usage;
}

const ANNOUNCED = ['audioInputTokens', 'audioOutputTokens', 'images', 'audioSeconds', 'searches'] as const;

/**
 * Never cheaper than plain input: a cache that turns out not to be written is billed as input. A one-hour write
 * without a rate of its own is taken as a five-minute one, the next best that is known.
 */
function inputClass(cacheWrite: '5m' | '1h' | undefined, rates: Rates, total: number): UsageClass {
  const plain = rates.inputTokens ? rateFor(rates.inputTokens, total) : 0n;
  const dearer = (rate: Rate | undefined) => rate !== undefined && rateFor(rate, total) >= plain;
  if (cacheWrite === '1h' && dearer(rates.cacheWrite1hTokens)) return 'cacheWrite1hTokens';
  if (cacheWrite !== undefined && dearer(rates.cacheWrite5mTokens)) return 'cacheWrite5mTokens';
  return 'inputTokens';
}

const MAX_TIERS = 16;

/** What is wrong with rates an operator gives: one line a fault. */
export function validateRates(rates: Readonly<Record<string, unknown>>): { path: string; message: string }[] {
  const faults: { path: string; message: string }[] = [];
  const amount = (path: string, value: unknown) => {
    if (typeof value !== 'string' || !isMoney(value)) {
      faults.push({ path, message: 'is not a decimal USD string with at most nine decimals' });
    } else if (parseMoney(value) < 0n || parseMoney(value) > MAX_AMOUNT) {
      faults.push({ path, message: 'is not between 0 and 1000000' });
    }
  };
  for (const [name, rate] of Object.entries(rates)) {
    if (!(PRICED_CLASSES as readonly string[]).includes(name)) {
      faults.push({ path: name, message: `is not a priced class (${PRICED_CLASSES.join(', ')})` });
    } else if (typeof rate === 'object' && rate !== null && 'base' in rate && 'tiers' in rate) {
      if (Object.keys(rate).length > 2) faults.push({ path: name, message: 'has more than base and tiers' });
      amount(`${name}.base`, rate.base);
      tierFaults(name, rate.tiers, amount, faults);
    } else amount(name, rate);
  }
  return faults;
}

function tierFaults(
  name: string,
  tiers: unknown,
  amount: (path: string, value: unknown) => void,
  faults: { path: string; message: string }[],
): void {
  if (!Array.isArray(tiers) || tiers.length > MAX_TIERS) {
    faults.push({ path: `${name}.tiers`, message: `is not a list of at most ${MAX_TIERS} tiers` });
    return;
  }
  let last = -1;
  tiers.forEach((tier: { above?: unknown; rate?: unknown } | null, i) => {
    const above = tier?.above;
    if (typeof above !== 'number' || !Number.isSafeInteger(above) || above <= last) {
      faults.push({
        path: `${name}.tiers.${i}.above`,
        message: 'is not a whole number above the tier before',
      });
    } else last = above;
    amount(`${name}.tiers.${i}.rate`, tier?.rate);
    if (Object.keys(tier ?? {}).length > 2)
      faults.push({ path: `${name}.tiers.${i}`, message: 'has more than above and rate' });
  });
}
