import type { Catalogue, Price } from '../domain/prices';
import type { EventStore } from '../event-store/event-store';
import type { Database } from '../postgres/pool';
import type { Projection } from '../read-models/runner/projection';
import type { HistoryReader } from './history/history-reader';

/** What queries are answered from; filled where the service is composed. */
export interface ReadServices {
  readonly store: Pick<EventStore, 'read' | 'head' | 'revisionAt' | 'subscribe'>;
  readonly pool: Database['pool'];
  readonly projection: Pick<Projection, 'position' | 'waitFor' | 'status'>;
  readonly history: Pick<HistoryReader, 'run'>;
  readonly catalogue: Catalogue;
  readonly listPrices: (atMs: number, provider?: string, model?: string) => Price[];
  /** The ledger's time, ms since epoch. */
  readonly now: () => number;
  /** Whether a ledger is open; makes its read models be followed where they were not. */
  readonly exists: (ledger: string) => Promise<boolean>;
}

/** Nest's token for them. */
export const ReadServices = Symbol('ReadServices');
