import { createHash } from 'node:crypto';
import type { Fingerprint } from '../../src/domain/attempt';
import type { BudgetDefinition } from '../../src/domain/budget';
import { DEFAULT_MAX_BUCKETS } from '../../src/domain/budget';
import type { CheckBudget, Command, RecordUsage } from '../../src/domain/commands';
import { decide } from '../../src/domain/decide';
import type { Decision } from '../../src/domain/decision';
import type { LedgerEvent, Recorded } from '../../src/domain/events';
import { evolve } from '../../src/domain/evolve';
import { NO_JOURNAL } from '../../src/domain/journal';
import { OpeningFold } from '../../src/domain/opening';
import type { Catalogue } from '../../src/domain/prices';
import { initialState } from '../../src/domain/state';
import type { LedgerState } from '../../src/domain/state';
import type { EventSource } from '../../src/read-models/event-source';

export const FINGERPRINT = 'ab'.repeat(32) as Fingerprint;
export const START_MS = Date.parse('2026-11-30T10:00:00.000Z');

/** A dollar per million tokens in, two out. */
const CATALOGUE: Catalogue = (provider, model) =>
  model.startsWith('unknown')
    ? undefined
    : {
        price: {
          priceId: `${provider}/${model}`,
          provider,
          model,
          source: 'catalogue',
          origin: 'test',
          rates: { inputTokens: '1', outputTokens: '2' },
        },
        exact: true,
      };

/** A log in memory, filled by the real domain or by hand. An event source for the runner. */
export class ScriptedLedger implements EventSource {
  readonly events: Recorded[] = [];
  readonly state: LedgerState;
  nowMs = START_MS;
  /** Answers of `recent`; undefined: everything is read from the log. */
  memoryFrom = 0;
  reads = 0;
  private readonly listeners = new Set<() => void>();
  private decisions = 0;

  constructor(readonly ledger = 'main') {
    this.state = initialState(ledger);
  }

  /** Decides a command and records its events; what history counts is folded when asked for. */
  run(command: Command): Decision {
    this.decisions += 1;
    const nonce = this.decisions.toString(16).padStart(12, '0');
    const context = { nowMs: this.nowMs, catalogue: CATALOGUE, nonce };
    let decision = decide(command, this.state, context);
    if (decision.kind === 'needs-opening' && command.type === 'DefineBudget') {
      const fold = new OpeningFold(command.budget, this.state, this.nowMs);
      for (const event of this.events) fold.apply(event);
      decision = decide(command, this.state, { ...context, opening: fold.result() });
    }
    if (decision.kind === 'accepted') this.record(decision.events);
    return decision;
  }

  /** Records events as they are, in one append. */
  record(events: readonly LedgerEvent[]): void {
    const at = new Date(this.nowMs).toISOString();
    for (const event of events) {
      const revision = this.events.length;
      const previousHash = this.events.at(-1)?.metadata.hash ?? '0'.repeat(64);
      const plain = JSON.parse(JSON.stringify(event)) as LedgerEvent;
      const hash = createHash('sha256')
        .update(previousHash)
        .update(JSON.stringify([plain, at]))
        .digest('hex');
      const metadata = { correlationId: 'c', causationId: 'c', actor: 'test', previousHash, hash };
      const envelope = {
        id: `event-${String(revision)}`,
        schemaVersion: 1,
        ledger: this.ledger,
        revision,
        at,
      };
      const recorded: Recorded = { ...plain, ...envelope, metadata };
      this.events.push(recorded);
      evolve(this.state, recorded, { revision, atMs: this.nowMs }, NO_JOURNAL);
    }
    for (const listener of this.listeners) listener();
  }

  recent(_ledger: string, fromRevision: number, max: number): readonly Recorded[] | undefined {
    if (fromRevision < this.memoryFrom) return undefined;
    return this.events.slice(fromRevision, fromRevision + max);
  }

  read(_ledger: string, fromRevision: number, max: number): Promise<readonly Recorded[]> {
    this.reads += 1;
    return Promise.resolve(this.events.slice(fromRevision, fromRevision + max));
  }

  head(): Promise<number> {
    return Promise.resolve(this.events.length - 1);
  }

  onNew(_ledger: string, callback: () => void): () => void {
    this.listeners.add(callback);
    return () => this.listeners.delete(callback);
  }
}

export const open = (timezone = 'UTC'): Command => ({ type: 'OpenLedger', settings: { timezone } });

export function check(
  requestId: string,
  fields: Partial<CheckBudget> & { inputTokens?: number; model?: string } = {},
): Command {
  const { inputTokens = 100_000, model = 'sonnet', ...rest } = fields;
  const account = { provider: 'anthropic', fingerprint: FINGERPRINT };
  return {
    type: 'CheckBudget',
    requestId,
    attempt: 1,
    candidates: [{ account, model, estimate: { inputTokens, maxOutputTokens: 5_000 } }],
    workload: 'chat',
    reserve: true,
    bodyHash: `body of ${requestId}`,
    ...rest,
  };
}

export function usage(
  reservationId: string,
  inputTokens: number,
  fields: Partial<RecordUsage> = {},
): Command {
  const outcome = 'succeeded';
  const counts = { inputTokens, outputTokens: 1_000 };
  const bodyHash = `usage ${reservationId} ${String(inputTokens)} ${JSON.stringify(fields)}`;
  return { type: 'RecordUsage', of: { reservationId }, outcome, usage: counts, bodyHash, ...fields };
}

export function budget(id: string, fields: Partial<BudgetDefinition> = {}): Command {
  const defaults = {
    match: {},
    each: [],
    window: 'day',
    limit: '1000',
    setAsides: [],
    mode: 'enforce',
  } as const;
  const definition = { ...defaults, thresholds: [], maxBuckets: DEFAULT_MAX_BUCKETS, id, ...fields };
  return { type: 'DefineBudget', budget: definition, countFrom: 'window' };
}

/** The reservation a decision made. */
export function reservationIn(decision: Decision): string {
  const answer = decision.kind === 'accepted' ? decision.answer : undefined;
  if (answer?.kind !== 'check-allowed' || !answer.reservation) {
    throw new Error(`no reservation: ${JSON.stringify(decision)}`);
  }
  return answer.reservation.id;
}

/** The charge a decision made. */
export function chargeIn(decision: Decision): string {
  const answer = decision.kind === 'accepted' ? decision.answer : undefined;
  if (answer?.kind !== 'usage-recorded') throw new Error(`no charge: ${JSON.stringify(decision)}`);
  return answer.chargeId;
}
