import { advance, evolve } from '../../../src/domain/evolve';
import { answerFrom } from '../../../src/domain/answer-from';
import type { Answer } from '../../../src/domain/answers';
import type { Account, Fingerprint } from '../../../src/domain/attempt';
import type { BudgetDefinition } from '../../../src/domain/budget';
import type { Candidate, CheckBudget, Command, RecordUsage } from '../../../src/domain/commands';
import { decide } from '../../../src/domain/decide';
import type { EventType, LedgerEvent } from '../../../src/domain/events';
import { NO_JOURNAL } from '../../../src/domain/journal';
import { OpeningFold } from '../../../src/domain/opening';
import type { Catalogue, Price, RatesText } from '../../../src/domain/prices';
import type { Rejection } from '../../../src/domain/rejections';
import type { Settings } from '../../../src/domain/settings';
import { serialiseState } from '../../../src/domain/snapshot';
import { initialState } from '../../../src/domain/state';
import type { LedgerState } from '../../../src/domain/state';
import { toTime } from '../../../src/domain/windows';

export const ANTHROPIC: Account = { provider: 'anthropic', fingerprint: 'a'.repeat(64) as Fingerprint };
export const DEEPSEEK: Account = { provider: 'deepseek', fingerprint: 'd'.repeat(64) as Fingerprint };

export type Stored = LedgerEvent & { readonly revision: number; readonly at: string };

/** 1 USD per million input tokens, 5 per million output: claude-haiku-4-5, as the catalogue would give it. */
const LIST: Record<string, RatesText> = {
  'anthropic/claude-haiku-4-5': {
    inputTokens: '1',
    outputTokens: '5',
    cacheReadTokens: '0.1',
    cacheWrite5mTokens: '1.25',
    cacheWrite1hTokens: '2',
  },
  'deepseek/deepseek-chat': { inputTokens: '0.28', outputTokens: '0.42', cacheReadTokens: '0.028' },
  'openai/free': { inputTokens: '0', outputTokens: '0' },
};

export const catalogue: Catalogue = (provider, model) => {
  const id = `${provider}/${model.replace(/-2\d{7}$/, '')}`;
  const rates = LIST[id];
  if (!rates) return undefined;
  const price: Price = {
    priceId: `cat_${id}`,
    provider,
    model: id.slice(provider.length + 1),
    source: 'catalogue',
    origin: 'test list',
    rates,
  };
  return { price, exact: price.model === model };
};

export const budget = (
  id: string,
  limit: string,
  rest: Partial<BudgetDefinition> = {},
): BudgetDefinition => ({
  id,
  match: {},
  each: [],
  window: 'day',
  limit,
  setAsides: [],
  mode: 'enforce',
  thresholds: [],
  maxBuckets: 1_000_000,
  ...rest,
});

type CheckFields = Partial<Omit<CheckBudget, 'type' | 'candidates'>> &
  Partial<Candidate> & { fallbacks?: Candidate[] };

/** A check of exactly `dollars` USD at haiku prices, unless told otherwise: input only, no minimum output. */
export function check(requestId: string, dollars: number, fields: CheckFields = {}): CheckBudget {
  const { account = ANTHROPIC, model = 'claude-haiku-4-5', estimate, fallbacks = [], ...rest } = fields;
  const first: Candidate = {
    account,
    model,
    estimate: estimate ?? { inputTokens: Math.round(dollars * 1_000_000), maxOutputTokens: 0 },
  };
  return {
    type: 'CheckBudget',
    requestId,
    attempt: 1,
    candidates: [first, ...fallbacks],
    reserve: true,
    bodyHash: `${requestId}:${dollars}:${JSON.stringify(fields)}`,
    ...rest,
  };
}

/** Usage of exactly `dollars` USD of uncached input at haiku prices. */
export function usage(reservationId: string, dollars: number, rest: Partial<RecordUsage> = {}): RecordUsage {
  return {
    type: 'RecordUsage',
    of: { reservationId },
    outcome: 'succeeded',
    usage: { inputTokens: Math.round(dollars * 1_000_000) },
    bodyHash: `${reservationId}:${dollars}:${JSON.stringify(rest)}`,
    ...rest,
  };
}

export interface Told {
  readonly answer: Answer | undefined;
  readonly rejection: Rejection | undefined;
  readonly replayed: boolean;
  readonly events: readonly Stored[];
}

/** A ledger in memory with a clock of its own: given events, when a command, then events. */
export class LedgerSpec {
  readonly state: LedgerState = initialState('main');
  readonly log: Stored[] = [];
  private nonces = 0;

  constructor(
    private nowMs = Date.parse('2026-11-30T12:00:00Z'),
    settings: Partial<Settings> = {},
  ) {
    this.send({ type: 'OpenLedger', settings: { minOutputTokens: 0, ...settings } });
  }

  get time(): string {
    return toTime(this.nowMs);
  }

  at(time: string): this {
    this.nowMs = Date.parse(time);
    return this;
  }

  later(seconds: number): this {
    this.nowMs += seconds * 1000;
    return this;
  }

  /** Decides, and applies what was decided. */
  send(command: Command): Told {
    advance(this.state, this.nowMs, NO_JOURNAL);
    this.nonces += 1;
    const context = { nowMs: this.nowMs, catalogue, nonce: this.nonces.toString(16).padStart(12, '0') };
    let decision = decide(command, this.state, context);
    if (decision.kind === 'needs-opening' && command.type === 'DefineBudget') {
      const fold = new OpeningFold(command.budget, this.state, this.nowMs);
      for (const event of this.log) if (Date.parse(event.at) >= decision.fromMs - 300_000) fold.apply(event);
      decision = decide(command, this.state, { ...context, opening: fold.result() });
    }
    switch (decision.kind) {
      case 'accepted':
        return {
          answer: decision.answer,
          rejection: undefined,
          replayed: false,
          events: this.append(decision.events),
        };
      case 'replay': {
        const event = this.log[decision.revision];
        if (!event) throw new Error('replay of nothing');
        return { answer: answerFrom(event), rejection: undefined, replayed: true, events: [] };
      }
      case 'unchanged':
        return { answer: decision.answer, rejection: undefined, replayed: false, events: [] };
      case 'rejected':
        return { answer: undefined, rejection: decision.rejection, replayed: false, events: [] };
      case 'needs-opening':
        throw new Error('needs an opening still');
    }
  }

  define(definition: BudgetDefinition, countFrom: 'window' | 'now' = 'window'): Told {
    return this.send({ type: 'DefineBudget', budget: definition, countFrom });
  }

  /** Sends a check that must pass; its reservation's id. */
  reserve(command: CheckBudget): string {
    const { answer } = this.send(command);
    if (answer?.kind !== 'check-allowed' || !answer.reservation)
      throw new Error(`not allowed: ${JSON.stringify(answer)}`);
    return answer.reservation.id;
  }

  /** The state a fresh fold of the log gives, as text; and the live one's, for comparison. */
  fold(): { live: string; fresh: string } {
    const fresh = initialState('main');
    for (const event of this.log) {
      evolve(fresh, event, { revision: event.revision, atMs: Date.parse(event.at) }, NO_JOURNAL);
    }
    advance(fresh, this.nowMs, NO_JOURNAL);
    advance(this.state, this.nowMs, NO_JOURNAL);
    return { live: serialiseState(this.state), fresh: serialiseState(fresh) };
  }

  /** charged and held of a budget's newest window, one bucket, decimal USD. */
  used(id: string, key = ''): { charged: string; held: string } | undefined {
    const windows = [...(this.state.budgets.get(id)?.windows.values() ?? [])];
    const bucket = windows.at(-1)?.buckets.get(key);
    return bucket && { charged: usd(bucket.charged), held: usd(bucket.held) };
  }

  private append(events: readonly LedgerEvent[]): Stored[] {
    const stored: Stored[] = [];
    for (const event of events) {
      const revision = this.state.revision + 1;
      // What is stored is what JSON keeps: a field that only undefined fills is not there on replay.
      const kept = JSON.parse(JSON.stringify({ ...event, revision, at: toTime(this.nowMs) })) as Stored;
      evolve(this.state, kept, { revision, atMs: this.nowMs }, NO_JOURNAL);
      this.log.push(kept);
      stored.push(kept);
    }
    return stored;
  }
}

const usd = (nanos: bigint): string => (Number(nanos) / 1e9).toString();

export const types = (events: readonly LedgerEvent[]): EventType[] => events.map((event) => event.type);
