import { advance, evolve } from '../../domain/evolve';
import { NO_JOURNAL } from '../../domain/journal';
import { restoreState } from '../../domain/snapshot';
import { initialState } from '../../domain/state';
import type { LedgerState } from '../../domain/state';
import { GENESIS_HASH, verifySealed } from '../../domain/sealing';
import { decodeEvent } from '../../domain/upcast';
import { toMs } from '../../domain/windows';
import { viewOfState } from './state-view';
import type { StateView } from './state-view';
import { compare, totalsAt } from './verification';
import type { Expected, FoldTotals, Verification } from './verification';

/** A fold of history, fed page by page with the log's exact bytes. Runs in the history worker. */
export interface Fold<R> {
  /** Whether it wants more. */
  page(events: readonly Uint8Array[]): boolean;
  result(): R;
}

export interface StateRequest {
  readonly kind: 'state';
  readonly ledger: string;
  /** Text of a snapshot to begin from. */
  readonly snapshot: string | undefined;
  readonly atMs: number | undefined;
  readonly revision: number | undefined;
}

export interface VerifyRequest {
  readonly kind: 'verify';
  readonly ledger: string;
  readonly expected: Expected | undefined;
}

export type HistoryRequest = StateRequest | VerifyRequest;
export type HistoryResult = StateView | Verification;

export const foldOf = (request: HistoryRequest): Fold<HistoryResult> =>
  request.kind === 'state' ? new StateFold(request) : new VerifyFold(request);

class StateFold implements Fold<StateView> {
  private readonly state: LedgerState;

  constructor(private readonly request: StateRequest) {
    this.state =
      request.snapshot === undefined ? initialState(request.ledger) : restoreState(request.snapshot);
  }

  page(events: readonly Uint8Array[]): boolean {
    const { atMs = Infinity, revision = Infinity } = this.request;
    for (const bytes of events) {
      const event = decodeEvent(Buffer.from(bytes));
      const eventMs = toMs(event.at);
      if (eventMs > atMs || event.revision > revision) return false;
      evolve(this.state, event, { revision: event.revision, atMs: eventMs }, NO_JOURNAL);
    }
    return true;
  }

  result(): StateView {
    const { state } = this;
    const atMs = Math.max(this.request.atMs ?? state.at, state.at);
    advance(state, atMs, NO_JOURNAL);
    return viewOfState(state, atMs);
  }
}

const MOST_FAULTS = 20;

class VerifyFold implements Fold<Verification> {
  private readonly state: LedgerState;
  private readonly faults: string[] = [];
  private hash = GENESIS_HASH;
  private events = 0;
  private broken = false;
  private atSpend: FoldTotals | undefined;
  private atBudgets: FoldTotals | undefined;

  constructor(private readonly request: VerifyRequest) {
    this.state = initialState(request.ledger);
  }

  page(events: readonly Uint8Array[]): boolean {
    for (const bytes of events) this.one(Buffer.from(bytes));
    return this.faults.length < MOST_FAULTS;
  }

  private one(bytes: Buffer): void {
    const revision = this.events;
    this.events += 1;
    const verified = verifySealed(bytes, this.hash);
    if (!verified.ok) {
      this.broken = true;
      this.faults.push(`revision ${revision} ${verified.fault}`);
      this.hash = hashIn(bytes) ?? this.hash;
      return;
    }
    this.hash = verified.hash;
    const { recorded } = verified;
    if (recorded.revision !== revision || recorded.ledger !== this.request.ledger) {
      this.broken = true;
      this.faults.push(
        `revision ${revision} holds an event of ${recorded.ledger}, revision ${recorded.revision}`,
      );
    }
    if (this.broken) return;
    evolve(this.state, recorded, { revision, atMs: toMs(recorded.at) }, NO_JOURNAL);
    const { expected } = this.request;
    if (expected?.spend.position === revision) this.atSpend = totalsAt(this.state, this.hash);
    if (expected?.budgets.position === revision) this.atBudgets = totalsAt(this.state, this.hash);
  }

  result(): Verification {
    const { expected } = this.request;
    const compared = this.broken || !expected ? undefined : compare(expected, this.atSpend, this.atBudgets);
    const faults = [...this.faults, ...(compared?.faults ?? [])];
    return {
      ok: faults.length === 0,
      head: { revision: this.events - 1, hash: this.hash },
      events: this.events,
      faults,
      totals: compared?.totals,
    };
  }
}

/** A damaged event's own hash: what follows it may still be whole. */
function hashIn(bytes: Buffer): string | undefined {
  return /"hash":"([0-9a-f]{64})"/.exec(bytes.toString('utf8'))?.[1];
}
