import type pg from 'pg';
import type { EventType, Recorded } from '../domain/events';

/** What runs a statement: a client inside of a transaction, or the pool. */
export type Sql = Pick<pg.ClientBase, 'query'>;

/** Small facts that a model carries from one batch to the next; kept in its checkpoint row. */
export type Memory = Readonly<Record<string, unknown>>;

export interface Batch {
  readonly ledger: string;
  /** Which version of the model's rows to write. */
  readonly version: number;
  /** Contiguous, at least one. */
  readonly events: readonly Recorded[];
  readonly memory: Memory;
}

/**
 * A read model: tables whose keys begin with (ledger, version), and how events change them. `apply` runs inside of
 * the transaction that moves the checkpoint; it aggregates in memory and writes a few statements a table.
 */
export interface ReadModel {
  readonly name: string;
  /** Raised when `apply` or the tables' meaning changes: the rows are then rebuilt beside the old ones. */
  readonly shape: number;
  readonly tables: readonly string[];
  /** Returns the memory for the next batch. Throws where an event cannot be understood: the model stops there. */
  apply(sql: Sql, batch: Batch): Promise<Memory>;
}

/** Exhaustive by its type: a new event type does not compile until it is known here. */
const KNOWN_TYPES: Readonly<Record<EventType, true>> = {
  LedgerOpened: true,
  SettingsChanged: true,
  BudgetDefined: true,
  BudgetAmended: true,
  BudgetRetired: true,
  PriceListed: true,
  PriceSet: true,
  PriceRetired: true,
  SpendEstimated: true,
  SpendReserved: true,
  SpendRefused: true,
  UsageCharged: true,
  ChargeCorrected: true,
  ReservationReleased: true,
  ReservationExpired: true,
  ReservationExtended: true,
  AlertRaised: true,
};

export const isKnownType = (type: string): type is EventType => Object.hasOwn(KNOWN_TYPES, type);

/** An event of a type this program does not know: never skipped, a newer program goes on from here. */
export class UnknownEventTypeError extends Error {
  override readonly name = 'UnknownEventTypeError';
  constructor(type: string, revision: number) {
    super(`event ${String(revision)} is of unknown type ${type}`);
  }
}

/** The log is not the one these rows were built from, or has a gap. */
export class LogBrokenError extends Error {
  override readonly name = 'LogBrokenError';
}
