import type { Price } from '../domain/prices';
import type { EventStore } from '../event-store/event-store';
import type { Queryable } from '../read-models/queryable';
import type { Projection } from '../read-models/runner/projection';
import type { HistoryReader } from './history/history-reader';

/** What queries are answered from; filled where the service is composed. */
export abstract class ReadServices {
  abstract readonly store: EventStore;
  abstract readonly pool: Queryable;
  abstract readonly projection: Projection;
  abstract readonly history: HistoryReader;
  abstract readonly listPrices: (atMs: number, provider?: string, model?: string) => Price[];
  /** The ledger's time, ms. */
  abstract readonly now: () => number;
  /** Whether a ledger is open; makes its read models be followed where they were not. */
  abstract readonly exists: (ledger: string) => Promise<boolean>;
}
