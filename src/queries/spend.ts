import { Query, QueryHandler } from '@nestjs/cqrs';
import type { IQueryHandler } from '@nestjs/cqrs';
import type { Page } from '../read-models/paging';
import type { SpendGroup, SpendRequest } from '../read-models/spend/spend-queries';
import { DEFAULT_SETTINGS } from '../domain/settings';
import { dayOf, toMs, windowAt } from '../domain/windows';
import { LedgerReads } from './ledger-reads';

export { SPEND_DIMENSIONS } from '../read-models/spend/spend-queries';
export type { SpendDimension } from '../read-models/spend/spend-queries';

export type SpendAnswer = Page<SpendGroup> & { readonly timezone: string };

/** Whole civil days of the ledger's timezone: the days of moments that are named instead. */
export class GetSpend extends Query<SpendAnswer> {
  constructor(
    readonly ledger: string,
    readonly request: Pick<SpendRequest, 'by' | 'cursor' | 'limit'>,
    /** `YYYY-MM-DD` or RFC 3339; `from` inclusive, `to` exclusive. */
    readonly from?: string,
    readonly to?: string,
    readonly after?: number,
  ) {
    super();
  }
}

@QueryHandler(GetSpend)
export class GetSpendHandler implements IQueryHandler<GetSpend> {
  constructor(private readonly reads: LedgerReads) {}

  async execute({ ledger, request, from, to, after }: GetSpend): Promise<SpendAnswer> {
    await this.reads.seen(ledger, ['spend', 'settings'], after);
    const { timezone } = (await this.reads.settings.settings(ledger)) ?? DEFAULT_SETTINGS;
    const page = await this.reads.spend.spend(ledger, {
      ...request,
      fromDay: from === undefined ? undefined : firstDay(from, timezone),
      toDay: to === undefined ? undefined : dayAfter(to, timezone),
    });
    return { ...page, timezone };
  }
}

const isDay = (text: string): boolean => /^\d{4}-\d{2}-\d{2}$/.test(text);

const firstDay = (text: string, timezone: string): string =>
  isDay(text) ? text : dayOf(timezone, toMs(text));

/** The first day that does not count: a moment within a day takes that day along. */
function dayAfter(text: string, timezone: string): string {
  if (isDay(text)) return text;
  const lastMs = toMs(text) - 1;
  return dayOf(timezone, windowAt('day', timezone, lastMs).toMs ?? lastMs);
}
