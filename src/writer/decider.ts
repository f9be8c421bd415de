import type { Answer } from '../domain/answers';
import type { BudgetDefinition, OpeningBalance } from '../domain/budget';
import type { Command } from '../domain/commands';
import type { Context, Decision } from '../domain/decision';
import type { LedgerEvent, Recorded } from '../domain/events';
import type { Journal } from '../domain/journal';
import type { Sealed, Unsealed } from '../domain/sealing';
import type { EventPosition, LedgerState } from '../domain/state';

/** Shape of the events this version writes; reading brings older ones up to it. */
export const EVENT_SCHEMA_VERSION = 1;

/** What history counts against a budget, folded event by event. */
export interface Opening {
  apply(event: Recorded): void;
  /** As it stands for a budget that is defined at this moment (ms). */
  result(atMs: number): OpeningBalance[];
}

/** The domain as the writer uses it; see `LEDGER_DECIDER`. */
export interface Decider {
  initialState(ledger: string): LedgerState;
  decide(command: Command, state: LedgerState, context: Context): Decision;
  evolve(state: LedgerState, event: LedgerEvent, at: EventPosition, journal: Journal): void;
  /** Applies what is due by time. */
  advance(state: LedgerState, atMs: number, journal: Journal): void;
  answerFrom(event: Recorded): Answer;
  /** How much is due and not recorded. */
  dueBefore(state: LedgerState, nowMs: number): number;
  opening(budget: BudgetDefinition, state: LedgerState, atMs: number): Opening;
  seal(what: Unsealed): Sealed;
  decode(bytes: Buffer): Recorded;
  readonly stateVersion: number;
  serialise(state: LedgerState): string;
  restore(text: string): LedgerState;
}
