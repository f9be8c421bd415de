import type { Recorded } from '../domain/events';

/** The log as read models see it: the writer's confirmed feed in memory, and the log behind it. */
export interface EventSource {
  /** Confirmed events from a revision on that are still in this process's memory; undefined: read the log instead. */
  recent(ledger: string, fromRevision: number, max: number): readonly Recorded[] | undefined;
  /** One page of the log, contiguous from `fromRevision`; empty beyond the head. */
  read(ledger: string, fromRevision: number, max: number): Promise<readonly Recorded[]>;
  /** Revision of the last event in the log; −1 where there is none. */
  head(ledger: string): Promise<number>;
  /** Calls back when a ledger may have new events. Returns how to stop. */
  onNew(ledger: string, callback: () => void): () => void;
}
