import { Query, QueryHandler } from '@nestjs/cqrs';
import type { IQueryHandler } from '@nestjs/cqrs';
import type { Settings } from '../domain/settings';
import type { LedgerView } from '../read-models/settings/settings-queries';
import { LedgerReads } from './ledger-reads';
import { QueryError } from './query-errors';

export class GetSettings extends Query<Settings> {
  constructor(
    readonly ledger: string,
    readonly after?: number,
  ) {
    super();
  }
}

@QueryHandler(GetSettings)
export class GetSettingsHandler implements IQueryHandler<GetSettings> {
  constructor(private readonly reads: LedgerReads) {}

  async execute({ ledger, after }: GetSettings): Promise<Settings> {
    await this.reads.seen(ledger, ['settings'], after);
    const settings = await this.reads.settings.settings(ledger);
    if (!settings) throw new QueryError('ledger_not_found', 'no such ledger');
    return settings;
  }
}

/** Every ledger that was opened, by name. */
export class ListLedgers extends Query<{ readonly data: readonly LedgerView[] }> {}

@QueryHandler(ListLedgers)
export class ListLedgersHandler implements IQueryHandler<ListLedgers> {
  constructor(private readonly reads: LedgerReads) {}

  async execute(): Promise<{ data: LedgerView[] }> {
    return { data: await this.reads.settings.ledgers() };
  }
}
