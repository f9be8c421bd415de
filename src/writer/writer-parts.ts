import type { Catalogue } from '../domain/prices';
import type { EventStore } from '../event-store/event-store';
import type { Decider } from './decider';
import type { LedgerClock, Timers, WriterLog, WriterOptions } from './options';
import type { WriterStorage } from './storage';

/** What a writer works with. */
export interface WriterParts {
  readonly store: EventStore;
  readonly clock: LedgerClock;
  readonly catalogue: Catalogue;
  readonly decider: Decider;
  readonly log: WriterLog;
  /** Without it there are no snapshots: every start folds the whole log. */
  readonly storage?: WriterStorage;
  readonly options?: Partial<WriterOptions>;
  readonly timers?: Timers;
}

/** How a writer fares; for metrics. */
export interface WriterCounters {
  readonly queued: number;
  /** Commands being decided or stored. */
  readonly inFlight: number;
  readonly appends: number;
  readonly appended: number;
  readonly conflicts: number;
  readonly unknownOutcomes: number;
  readonly refusals: number;
}
