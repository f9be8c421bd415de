import type { Candidate, CheckBudget } from './commands';
import type { Context } from './decision';
import type { BudgetBalance } from './budget';
import { REFUSAL_CODES } from './events';
import type { Reason } from './events';
import { ZERO, formatMoney, money } from './money';
import type { Money } from './money';
import { bucketAt, placeIn, within } from './places';
import type { Place } from './places';
import { estimateUsage, parseRates, priceUsage, ratesFor } from './pricing';
import { choosePrice } from './pricing-choice';
import type { PriceChoice } from './pricing-choice';
import type { Rates } from './prices';
import type { AttemptRecord, BucketState, BudgetState, LedgerState } from './state';
import type { Usage } from './usage';
import { recurs, toWindow, windowKey } from './windows';

/** More matching budgets than this refuse a request (DESIGN 7, bounds). */
export const MAX_BUDGETS = 64;

/** One candidate held against the price list and every budget that matches it, at a moment. */
export interface Evaluation {
  readonly candidate: number;
  readonly of: AttemptRecord;
  readonly usage: Usage;
  readonly choice: PriceChoice;
  /** Undefined where a price is missing. */
  readonly amount: Money | undefined;
  /** In the order of REFUSAL_CODES; empty: it passes. */
  readonly reasons: readonly Reason[];
  readonly warnings: readonly Reason[];
  /** Where its hold would count. */
  readonly places: readonly Place[];
  /** Whether any budget matches at all. */
  readonly budgeted: boolean;
}

/** All rules of RULES 2 for one candidate at one moment. Pure: asks, changes nothing. */
export function evaluate(
  state: LedgerState,
  command: CheckBudget,
  index: number,
  context: Context,
  atMs: number,
): Evaluation {
  const candidate = command.candidates[index];
  if (!candidate) throw new RangeError('no such candidate');
  const choice = choosePrice(state, candidate, atMs, context);
  const of = attemptRecord(command, candidate, choice.modelId);
  const { usage, amount, missing } = estimate(state, command, candidate, choice);
  const reasons: Reason[] = [];
  if (amount === undefined) reasons.push({ code: 'unknown_price', candidate: index, detail: missing });
  const judged = judgeBudgets(state, of, amount, index, atMs);
  reasons.push(...judged.reasons);
  if (reasons.length > 1) reasons.sort((a, b) => rank(a) - rank(b));
  const { warnings, places, budgeted } = judged;
  return { candidate: index, of, usage, choice, amount, reasons, warnings, places, budgeted };
}

const rank = (reason: Reason): number => REFUSAL_CODES.indexOf(reason.code);

function attemptRecord(
  command: CheckBudget,
  candidate: Candidate,
  modelId: string | undefined,
): AttemptRecord {
  return {
    account: candidate.account,
    model: candidate.model,
    modelId,
    workload: command.workload,
    subject: command.subject,
    conversation: command.conversation,
    tags: command.tags,
    requestId: command.requestId,
    attempt: command.attempt,
    job: command.job,
    serviceTier: command.serviceTier,
  };
}

interface Estimate {
  readonly usage: Usage;
  readonly amount: Money | undefined;
  /** What has no price. */
  readonly missing: string;
}

const NO_RATES: Rates = {};

function estimate(
  state: LedgerState,
  command: CheckBudget,
  candidate: Candidate,
  choice: PriceChoice,
): Estimate {
  const { settings } = state;
  const own = command.workload === undefined ? undefined : settings.workloads[command.workload];
  const minOutputTokens = own?.minOutputTokens ?? settings.minOutputTokens;
  const { price } = choice;
  const text = price && ratesFor(price, command.serviceTier);
  const rates = text ? parseRates(text) : NO_RATES;
  const usage = estimateUsage(candidate.estimate, {
    minOutputTokens,
    rates,
    embedding: price?.embedding === true,
  });
  const where = `${candidate.account.provider}/${candidate.model}`;
  if (!price) return { usage, amount: undefined, missing: `no price is known for ${where}` };
  if (!choice.exact && settings.requireExactPrice) {
    return {
      usage,
      amount: undefined,
      missing: `${where} matches ${price.model} only by pattern, and the ledger requires an exact price`,
    };
  }
  if (!text) {
    return {
      usage,
      amount: undefined,
      missing: `${where} has no price for service tier ${command.serviceTier ?? 'standard'}`,
    };
  }
  const { cost, unpriced } = priceUsage(rates, usage, { requests: 1 });
  if (unpriced.length === 0) return { usage, amount: cost, missing: '' };
  return { usage, amount: undefined, missing: `${where} has no price for ${unpriced.join(', ')}` };
}

interface Judgement {
  readonly reasons: Reason[];
  readonly warnings: Reason[];
  readonly places: Place[];
  readonly budgeted: boolean;
}

function judgeBudgets(
  state: LedgerState,
  of: AttemptRecord,
  amount: Money | undefined,
  candidate: number,
  atMs: number,
): Judgement {
  const result: Judgement = { reasons: [], warnings: [], places: [], budgeted: true };
  const matching: Place[] = [];
  for (const budget of state.index.find(of)) {
    const place = placeIn(budget, of, state.settings.timezone, atMs);
    const { fromMs } = place.span;
    if (fromMs === undefined || fromMs <= atMs) matching.push(place);
  }
  if (matching.length === 0) {
    if (state.settings.onNoBudget === 'refuse') {
      result.reasons.push({
        code: 'no_budget',
        candidate,
        detail: 'no budget matches, and the ledger refuses what no budget covers',
      });
    }
    return { ...result, budgeted: false };
  }
  if (matching.length > MAX_BUDGETS) {
    const detail = `${matching.length} budgets match; at most ${MAX_BUDGETS} may`;
    result.reasons.push({ code: 'too_many_budgets', candidate, detail });
    matching.length = MAX_BUDGETS;
  }
  for (const place of matching) judge(place, amount, candidate, atMs, result);
  return result;
}

/** One budget: whether the request fits into it, and where it would count. */
function judge(
  place: Place,
  amount: Money | undefined,
  candidate: number,
  atMs: number,
  into: Judgement,
): void {
  const { budget } = place;
  const complaints = budget.definition.mode === 'warn' ? into.warnings : into.reasons;
  if (!within(place.span, atMs)) {
    complaints.push({ code: 'budget_ended', candidate, ...numbers(place) });
    return;
  }
  const window = budget.windows.get(windowKey(place.span));
  if (window && !window.buckets.has(place.key) && window.buckets.size >= budget.definition.maxBuckets) {
    complaints.push({ code: 'too_many_buckets', candidate, ...numbers(place) });
    return;
  }
  into.places.push(place);
  if (budget.limit === 0n) complaints.push({ code: 'budget_exceeded', candidate, ...numbers(place) });
  else if (amount !== undefined && amount > 0n && amount > roomIn(place)) {
    complaints.push({ code: 'budget_exceeded', candidate, ...numbers(place) });
  }
}

/** What a place has left for an attempt of its set-aside; may be negative. Nano-dollars. */
export function roomIn(place: Place): Money {
  const bucket = bucketAt(place);
  const used = bucket ? bucket.charged + bucket.held : 0n;
  return money(place.budget.limit - used - othersUnused(place.budget, bucket, place.setAside));
}

/** Σ over the set-asides S that the request is not in of max(0, S.amount − used(S)). */
export function othersUnused(budget: BudgetState, bucket: BucketState | undefined, own: number): bigint {
  let unused = 0n;
  for (let i = 0; i < budget.setAsides.length; i += 1) {
    if (i === own) continue;
    const used = bucket?.setAsides[i];
    const left = (budget.setAsides[i]?.amount ?? 0n) - (used ? used.charged + used.held : 0n);
    if (left > 0n) unused += left;
  }
  return unused;
}

function numbers(place: Place): Omit<Reason, 'code' | 'candidate'> {
  const { id, window, bucket, limit, charged, held, remaining, resetsAt } = balance(place, ZERO);
  const others = othersUnused(place.budget, bucketAt(place), place.setAside);
  return {
    budget: id,
    window,
    ...(bucket && { bucket }),
    limit,
    charged,
    held,
    ...(others > 0n && { setAside: formatMoney(others) }),
    remaining,
    ...(resetsAt !== undefined && { resetsAt }),
  };
}

/** A place with its numbers, as they will be once `extra` more is held in it. */
export function balance(place: Place, extra: Money): BudgetBalance {
  const bucket = bucketAt(place);
  const { kind } = place.span;
  const window = toWindow(place.span);
  return {
    bucket: place.values,
    charged: formatMoney(bucket?.charged ?? 0n),
    generation: place.budget.generation,
    held: formatMoney((bucket?.held ?? 0n) + extra),
    id: place.budget.id,
    limit: formatMoney(place.budget.limit),
    remaining: formatMoney(roomIn(place) - extra),
    resetsAt: recurs(kind) ? window.to : undefined,
    setAside: place.setAside < 0 ? undefined : place.setAside,
    window,
  };
}
