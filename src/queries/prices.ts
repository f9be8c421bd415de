import { Query, QueryHandler } from '@nestjs/cqrs';
import type { IQueryHandler } from '@nestjs/cqrs';
import type { Price } from '../domain/prices';
import { decodeCursor, limitOf, pageOf } from '../read-models/paging';
import type { Page, PageRequest } from '../read-models/paging';
import { LedgerReads } from './ledger-reads';

/** A price of the catalogue, or an override with the moment it was set. */
export type PriceAnswer = Price & { readonly since?: string };

export interface PriceFilter {
  readonly provider?: string;
  /** Part of a model's name. */
  readonly model?: string;
}

/** What is in force now, by provider and model: the ledger's overrides, and the catalogue where there is none. */
export class ListPrices extends Query<Page<PriceAnswer>> {
  constructor(
    readonly ledger: string,
    readonly filter: PriceFilter,
    readonly page: PageRequest,
    readonly after?: number,
  ) {
    super();
  }
}

@QueryHandler(ListPrices)
export class ListPricesHandler implements IQueryHandler<ListPrices> {
  constructor(private readonly reads: LedgerReads) {}

  async execute({ ledger, filter, page, after }: ListPrices): Promise<Page<PriceAnswer>> {
    await this.reads.seen(ledger, ['settings'], after);
    const behind = decodeCursor(page, 1)?.[0];
    const limit = limitOf(page);
    const overrides = await this.reads.settings.overrides(ledger);
    const own = overrides.map(({ price, since }): PriceAnswer => ({ ...price, since }));
    const inForce = new Set(own.map(nameOf));
    const { listPrices, now } = this.reads.services;
    const listed = listPrices(now(), filter.provider, filter.model);
    const prices = [
      ...own.filter((price) => isAskedFor(price, filter)),
      ...listed.filter((price) => !inForce.has(nameOf(price))),
    ]
      .map((price) => ({ key: `${nameOf(price)}/${price.priceId}`, price }))
      .filter(({ key }) => behind === undefined || key > behind)
      .sort((a, b) => (a.key < b.key ? -1 : 1));
    return pageOf(
      prices.slice(0, limit + 1),
      limit,
      ({ key }) => [key],
      ({ price }) => price,
    );
  }
}

const nameOf = ({ provider, model }: Price): string => `${provider}/${model}`;

const isAskedFor = (price: Price, { provider, model }: PriceFilter): boolean =>
  (provider === undefined || price.provider === provider) &&
  (model === undefined || price.model.includes(model));
