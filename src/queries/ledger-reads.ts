import { Inject, Injectable } from '@nestjs/common';
import { BudgetQueries } from '../read-models/budgets/budget-queries';
import { EventQueries } from '../read-models/event-index/event-queries';
import { SettingsQueries } from '../read-models/settings/settings-queries';
import { AttemptQueries } from '../read-models/spend/attempt-queries';
import { SpendQueries } from '../read-models/spend/spend-queries';
import { QueryError } from './query-errors';
import { ReadServices } from './read-services';

/** A read model's name: what a query names to wait for. */
export type ModelName = 'spend' | 'budgets' | 'settings' | 'event-index';

/** How long a query waits for a position it was told to have seen. */
const PATIENCE_MS = 5_000;

/** The read models' queries, and the wait before asking them. */
@Injectable()
export class LedgerReads {
  readonly attempts: AttemptQueries;
  readonly budgets: BudgetQueries;
  readonly events: EventQueries;
  readonly settings: SettingsQueries;
  readonly spend: SpendQueries;

  constructor(@Inject(ReadServices) readonly services: ReadServices) {
    const { pool } = services;
    this.attempts = new AttemptQueries(pool);
    this.budgets = new BudgetQueries(pool);
    this.events = new EventQueries(pool);
    this.settings = new SettingsQueries(pool);
    this.spend = new SpendQueries(pool);
  }

  /**
   * Resolves when the models have seen a position; by default that the ledger was opened, so that a new ledger is not
   * taken for an empty one. Throws QueryError: ledger_not_found, position_ahead at once, projection_behind.
   */
  async seen(ledger: string, models: readonly ModelName[], after = 0): Promise<void> {
    const { projection } = this.services;
    if (projection.position(ledger, models) >= after) return;
    await this.mustExist(ledger);
    const head = await this.head(ledger);
    if (after > head) throw positionAhead(after, head);
    if ((await projection.waitFor(ledger, after, PATIENCE_MS, models)) === 'seen') return;
    const position = projection.position(ledger, models);
    throw new QueryError('projection_behind', `position ${after} is not projected yet`, { position });
  }

  /** Throws QueryError ledger_not_found. */
  async mustExist(ledger: string): Promise<void> {
    if (!(await this.services.exists(ledger))) throw new QueryError('ledger_not_found', 'no such ledger');
  }

  /** Revision of the log's last event; −1 where there is none. */
  async head(ledger: string): Promise<number> {
    return (await this.services.store.head(ledger))?.revision ?? -1;
  }
}

export const positionAhead = (after: number, head: number): QueryError =>
  new QueryError('position_ahead', `the log ends at ${head}`, { position: after, head });
