import type { RecordUsage } from './commands';
import type { Context } from './decision';
import type { ErrorData, Quality } from './events';
import { ZERO, add, larger, parseMoney } from './money';
import type { Money } from './money';
import { parseRates, priceUsage, ratesFor } from './pricing';
import { choosePrice } from './pricing-choice';
import type { Price } from './prices';
import type { AttemptRecord, LedgerState } from './state';
import { USAGE_CLASSES } from './usage';
import type { Usage, UsageClass } from './usage';

/** What the ledger expected of an attempt: the estimate and the hold of its reservation; nothing where unreserved. */
export interface Expectation {
  readonly of: AttemptRecord;
  readonly usage: Usage;
  readonly amount: Money;
  readonly maxOutputTokens: number | undefined;
  readonly priceId: string | undefined;
  /** Prices in force at this moment apply (ms). */
  readonly pricedAtMs: number;
}

/** What an attempt cost, and how well that is known. */
export interface Figures {
  readonly usage: Usage;
  readonly cost: Money;
  readonly quality: Quality;
  readonly unpriced: boolean;
  readonly price: Price | undefined;
  /** Our own figure, where usage could be priced. */
  readonly ownCost: Money | undefined;
  /** The provider's figure won over ours. */
  readonly reportedWins: boolean;
  /** The two differ by more than 20 %. */
  readonly mismatch: boolean;
  readonly error: ErrorData | undefined;
}

/** RULES 5: what a record says an attempt cost. */
export function figuresOf(
  command: RecordUsage,
  expected: Expectation,
  state: LedgerState,
  context: Context,
): Figures {
  const { usage, quality, free } = settledUsage(command, expected);
  const price = priceServed(command, expected, state, context);
  const own = free
    ? { cost: ZERO, unpriced: false }
    : costOf(price, command.servedTier ?? expected.of.serviceTier, usage, expected.amount);
  const reported = reportedCost(command);
  const reportedWins =
    reported !== undefined && (reported > 0n || own.cost === 0n) && !(reported === 0n && own.unpriced);
  const error = command.error && {
    code: command.error.code,
    status: command.error.status,
    type: command.error.type,
  };
  return {
    usage,
    cost: reportedWins ? reported : own.cost,
    // A provider that names the cost has settled the matter, whether or not it also sent its usage.
    quality: reportedWins && command.outcome !== 'aborted' ? 'confirmed' : quality,
    unpriced: own.unpriced && !reportedWins,
    price,
    ownCost: own.unpriced ? undefined : own.cost,
    reportedWins,
    mismatch:
      reported !== undefined && !own.unpriced && command.usage !== undefined && differs(reported, own.cost),
    error,
  };
}

/** With the customer's own upstream key the upstream's cost is added to the reseller's. */
function reportedCost(command: RecordUsage): Money | undefined {
  if (command.reportedCost === undefined) return undefined;
  const reported = parseMoney(command.reportedCost);
  return command.upstreamCost === undefined ? reported : add(reported, parseMoney(command.upstreamCost));
}

/** More than 20 % of our own figure apart. */
function differs(reported: Money, own: Money): boolean {
  const apart = reported > own ? reported - own : own - reported;
  return apart * 5n > own;
}

interface SettledUsage {
  readonly usage: Usage;
  readonly quality: Quality;
  /** Nothing was bought: costs 0 and needs no price. */
  readonly free: boolean;
}

function settledUsage(command: RecordUsage, expected: Expectation): SettledUsage {
  const { outcome, usage, error } = command;
  if (usage && command.partial !== true) return { usage, quality: 'confirmed', free: false };
  if (outcome === 'failed' && !usage) {
    if (error && error.status >= 400) return { usage: {}, quality: 'confirmed', free: true };
    return { usage: expected.usage, quality: 'unconfirmed', free: false };
  }
  return { usage: atLeastSeen(usage ?? {}, expected), quality: 'unconfirmed', free: false };
}

const INPUT_CLASSES: readonly UsageClass[] = [
  'inputTokens',
  'cacheReadTokens',
  'cacheWrite5mTokens',
  'cacheWrite1hTokens',
  'audioInputTokens',
];

/**
 * A call without its final usage: input as seen, else as estimated; output at the requested maximum, else the
 * estimate's; nothing below what was seen (casebook 18).
 */
function atLeastSeen(seen: Usage, { usage: estimate, maxOutputTokens }: Expectation): Usage {
  const inputSeen = INPUT_CLASSES.some((name) => (seen[name] ?? 0) > 0);
  const settled: Partial<Record<UsageClass, number>> = {};
  for (const name of USAGE_CLASSES) {
    const expected = INPUT_CLASSES.includes(name) && inputSeen ? 0 : (estimate[name] ?? 0);
    const count = Math.max(expected, seen[name] ?? 0);
    if (count > 0) settled[name] = count;
  }
  // An embedding has no output, whatever was asked for.
  const output = (estimate.outputTokens ?? 0) === 0 ? 0 : (maxOutputTokens ?? estimate.outputTokens ?? 0);
  const outputTokens = Math.max(output, seen.outputTokens ?? 0);
  return { ...settled, outputTokens };
}

/** The price of the model that was served, in force when reserved; one set since is better than none. */
function priceServed(
  command: RecordUsage,
  expected: Expectation,
  state: LedgerState,
  context: Context,
): Price | undefined {
  const { of, priceId, pricedAtMs } = expected;
  const served = command.servedModel ?? of.model;
  const reserved = priceId === undefined ? undefined : state.prices.get(priceId);
  if (reserved && (served === of.model || served === of.modelId)) return reserved;
  const at = { account: of.account, model: served };
  const choice = choosePrice(state, at, pricedAtMs, context).price;
  return choice ?? choosePrice(state, at, context.nowMs, context).price;
}

/** Prices usage; what has no price makes it a lower bound: at least the hold, never silently 0 (casebook 22). */
export function costOf(
  price: Price | undefined,
  serviceTier: string | undefined,
  usage: Usage,
  reserved: Money,
): { cost: Money; unpriced: boolean } {
  const text = price && ratesFor(price, serviceTier);
  if (!text) {
    const bought = USAGE_CLASSES.some((name) => (usage[name] ?? 0) > 0);
    return bought ? { cost: reserved, unpriced: true } : { cost: ZERO, unpriced: false };
  }
  const { cost, unpriced } = priceUsage(parseRates(text), usage, { requests: 1 });
  return unpriced.length === 0 ? { cost, unpriced: false } : { cost: larger(cost, reserved), unpriced: true };
}
