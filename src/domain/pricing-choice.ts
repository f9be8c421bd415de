import type { Attempt } from './attempt';
import type { Context } from './decision';
import type { Price } from './prices';
import { overrideAt } from './state';
import type { LedgerState } from './state';

/** The price of a model at a moment, and how it was found. */
export interface PriceChoice {
  readonly price: Price | undefined;
  /** The name sent is the one the price stands under, and not a prefix or pattern of it. */
  readonly exact: boolean;
  /** The catalogue's id for the name, whatever the price comes from. */
  readonly modelId: string | undefined;
}

/** An override wins over the catalogue: under the name sent, else under the catalogue's id for it. */
export function choosePrice(
  state: LedgerState,
  of: Pick<Attempt, 'account' | 'model'>,
  atMs: number,
  context: Pick<Context, 'catalogue'>,
): PriceChoice {
  const { provider } = of.account;
  const listed = context.catalogue(provider, of.model, atMs);
  const modelId = listed?.price.model;
  const own = overrideAt(state, provider, of.model, atMs);
  if (own) return { price: own, exact: true, modelId };
  const byId = modelId === undefined ? undefined : overrideAt(state, provider, modelId, atMs);
  if (byId) return { price: byId, exact: listed?.exact ?? false, modelId };
  return { price: listed?.price, exact: listed?.exact ?? false, modelId };
}
