import type { Attempt } from './attempt';
import type { Bucket, BudgetDefinition, Match } from './budget';
import { BudgetIndex } from './matching';
import { parseMoney } from './money';
import type { Money } from './money';
import type { Quality } from './events';
import type { Price } from './prices';
import type { ReservationStateName } from './rejections';
import { DEFAULT_SETTINGS } from './settings';
import type { OnExpiry, Settings } from './settings';
import type { Usage } from './usage';
import type { TimeSpan } from './windows';

/** What is spent and held in one place. Nano-dollars. */
export interface Counter {
  charged: Money;
  held: Money;
}

export interface BucketState extends Counter {
  readonly values: Bucket | undefined;
  /** By set-aside index. */
  readonly setAsides: Counter[];
  /** Thresholds that already raised their alert in this window. */
  fired: readonly number[];
}

export interface WindowState {
  readonly span: TimeSpan;
  readonly buckets: Map<string, BucketState>;
  /** Reservations held in it: a closed window with none leaves memory. */
  holds: number;
  /** `too_many_buckets` was raised for it. */
  fullAlerted: boolean;
}

/** A set-aside with its amount read. */
export interface SetAsideRule {
  readonly match: Match;
  readonly amount: Money;
}

export interface BudgetState {
  readonly id: string;
  readonly generation: number;
  readonly retired: boolean;
  readonly definition: BudgetDefinition;
  readonly limit: Money;
  readonly setAsides: readonly SetAsideRule[];
  /** Spending judged before this revision does not count here (`countFrom: "now"`); else −1. */
  readonly countedFrom: number;
  /** Rises when the limit changes: thresholds are armed again. */
  readonly armed: number;
  /** By beginning of the window (`windowKey`). */
  readonly windows: Map<number, WindowState>;
}

/** One place a hold is counted in, by keys, so that a snapshot can hold it. */
export interface HeldPlace {
  readonly budget: string;
  readonly generation: number;
  readonly window: number;
  readonly bucket: string;
  readonly setAside: number;
}

/** What an attempt is, for reservations and charges alike. */
export interface AttemptRecord extends Attempt {
  readonly requestId?: string;
  readonly attempt?: number;
  readonly job?: string;
  readonly serviceTier?: string;
}

export interface ReservationState {
  readonly id: string;
  readonly revision: number;
  readonly of: AttemptRecord;
  readonly amount: Money;
  readonly usage: Usage;
  readonly maxOutputTokens: number | undefined;
  readonly priceId: string | undefined;
  readonly reservedAtMs: number;
  readonly onExpiry: OnExpiry;
  expiresAtMs: number;
  status: ReservationStateName;
  /** Where its hold is counted; empty once it ended. */
  places: readonly HeldPlace[];
  /** Its expiry stands in the log, or it ended otherwise: nothing is due any more. */
  settled: boolean;
  /** Revision of the event that ended it, for replays of a release. */
  endRevision: number;
  /** Revision of the release that was accepted, whatever came after it; −1: none. */
  releaseRevision: number;
  /** The first is the reservation's own; more are duplicate sends. */
  chargeIds: readonly string[];
}

export interface AcceptedBody {
  readonly hash: string;
  readonly revision: number;
}

export interface ChargeState {
  readonly id: string;
  readonly reservationId: string | undefined;
  readonly usageId: string | undefined;
  readonly of: AttemptRecord;
  /** Hold it replaces; 0 for duplicate sends and unreserved usage. */
  readonly reserved: Money;
  /** The moment whose windows it counts in. */
  readonly countedAtMs: number;
  /** The revision budgets with `countFrom: "now"` judge it by. */
  readonly countedRevision: number;
  cost: Money;
  quality: Quality;
  usage: Usage;
  servedModel: string | undefined;
  servedTier: string | undefined;
  providerRequestId: string | undefined;
  unpriced: boolean;
  bodies: readonly AcceptedBody[];
  corrections: readonly (AcceptedBody & { readonly id: string })[];
}

export interface CheckRecord {
  readonly bodyHash: string;
  readonly revision: number;
  readonly reservationId: string | undefined;
}

/** An override's history: which price was in force from when (undefined: none). */
export interface OverrideSince {
  readonly fromMs: number;
  readonly price: Price | undefined;
}

/** Whether a charge waits for this price: of the model that was served, where the provider said which. */
export function waitsFor(
  price: Pick<Price, 'provider' | 'model'>,
  { of, servedModel }: ChargeState,
): boolean {
  if (of.account.provider !== price.provider) return false;
  return servedModel === undefined
    ? price.model === of.model || price.model === of.modelId
    : price.model === servedModel;
}

/** Where an event stands. */
export interface EventPosition {
  readonly revision: number;
  /** ms since epoch. */
  readonly atMs: number;
}

/** Everything a decision depends on. Mutated by `evolve` alone, through a journal. */
export interface LedgerState {
  readonly ledger: string;
  /** Of the last event; −1 when there is none. */
  revision: number;
  /** ms since epoch of the last event. */
  at: number;
  opened: boolean;
  settings: Settings;
  /** Something was reserved or charged: the timezone is fixed. */
  spent: boolean;
  readonly budgets: Map<string, BudgetState>;
  /** Derived from `budgets`. */
  readonly index: BudgetIndex<BudgetState>;
  readonly checks: Map<string, CheckRecord>;
  readonly reservations: Map<string, ReservationState>;
  /** Held reservations whose end is not in the log, by the slot of their expiry (`expirySlot`). */
  readonly due: Map<number, Set<string>>;
  /** Holds that are given back on expiry are given back up to this slot. */
  releasedThrough: number;
  readonly charges: Map<string, ChargeState>;
  /** usageId → chargeId. */
  readonly usages: Map<string, string>;
  /** Charges with usage that had no price. */
  readonly unpriced: Set<string>;
  /** Those of them that a price was set for since. */
  readonly repriceable: Set<string>;
  /** Catalogue prices that were listed, and overrides, by priceId. */
  readonly prices: Map<string, Price>;
  /** By `priceKey(provider, model)`. */
  readonly overrides: Map<string, readonly OverrideSince[]>;
}

export const checkKey = (requestId: string, attempt: number): string => `${attempt}\u0000${requestId}`;
export const priceKey = (provider: string, model: string): string => `${provider}\u0000${model}`;

/** Expiries are found by slots of 64 ms: one map entry for many reservations. */
export const expirySlot = (ms: number): number => Math.floor(ms / 64);

export function initialState(ledger: string): LedgerState {
  return {
    ledger,
    revision: -1,
    at: 0,
    opened: false,
    settings: DEFAULT_SETTINGS,
    spent: false,
    budgets: new Map(),
    index: new BudgetIndex<BudgetState>(),
    checks: new Map(),
    reservations: new Map(),
    due: new Map(),
    releasedThrough: 0,
    charges: new Map(),
    usages: new Map(),
    unpriced: new Set(),
    repriceable: new Set(),
    prices: new Map(),
    overrides: new Map(),
  };
}

/** The override in force at a moment, or undefined. */
export function overrideAt(
  state: LedgerState,
  provider: string,
  model: string,
  atMs: number,
): Price | undefined {
  const history = state.overrides.get(priceKey(provider, model));
  if (!history) return undefined;
  for (let i = history.length - 1; i >= 0; i -= 1) {
    const entry = history[i];
    if (entry && entry.fromMs <= atMs) return entry.price;
  }
  return undefined;
}

/** The attempt in an event's data. */
export function attemptOf(data: AttemptRecord): AttemptRecord {
  return {
    account: data.account,
    model: data.model,
    modelId: data.modelId,
    workload: data.workload,
    subject: data.subject,
    conversation: data.conversation,
    tags: data.tags,
    requestId: data.requestId,
    attempt: data.attempt,
    job: data.job,
    serviceTier: data.serviceTier,
  };
}

/** A budget by its definition, its amounts read. */
export function budgetState(
  definition: BudgetDefinition,
  generation: number,
  countedFrom: number,
  armed: number,
  windows: Map<number, WindowState>,
): BudgetState {
  return {
    id: definition.id,
    generation,
    retired: false,
    definition,
    limit: parseMoney(definition.limit),
    setAsides: definition.setAsides.map(({ match, amount }) => ({ match, amount: parseMoney(amount) })),
    countedFrom,
    armed,
    windows,
  };
}
