import { calcPrice } from '@pydantic/genai-prices';
import type { ModelInfo, ModelPrice, Provider } from '@pydantic/genai-prices';
import type { Catalogue, CatalogueMatch, Price } from '../domain/prices';
import { priceOf } from './listed-price';
import { LISTED_PROVIDERS, listOf } from './providers';

const MOST_REMEMBERED = 10_000;
const MINUTE_MS = 60_000;

/**
 * The bundled price list as a pure look-up. It never asks the network. Prices that change with the date or the time
 * of day are looked up by the minute, all others once.
 */
export function createCatalogue(): Catalogue {
  const known = new Map<string, CatalogueMatch | null>();
  return (provider, model, atMs) => {
    const name = `${provider}\u0000${model}`;
    const steady = known.get(name);
    if (steady !== undefined) return steady ?? undefined;
    const minute = Math.floor(atMs / MINUTE_MS);
    const timed = `${name}\u0000${minute}`;
    const remembered = known.get(timed);
    if (remembered !== undefined) return remembered ?? undefined;
    const { match, changes } = lookUp(provider, model, minute * MINUTE_MS);
    if (known.size >= MOST_REMEMBERED) known.clear();
    known.set(changes ? timed : name, match ?? null);
    return match;
  };
}

interface LookUp {
  readonly match: CatalogueMatch | undefined;
  /** The price depends on the moment. */
  readonly changes: boolean;
}

/** The usage does not matter: only the model that is found, and its prices at the moment, are taken. */
const ANY_USAGE = { input_tokens: 1 };

function lookUp(provider: string, model: string, atMs: number): LookUp {
  const list = listOf(provider);
  const named = list?.models.find(({ id }) => id === model);
  if (list && named) return lookUpNamed(provider, list, named, atMs);
  const found = list && calcPrice(ANY_USAGE, model, { providerId: list.id, timestamp: new Date(atMs) });
  if (!found) return { match: undefined, changes: false };
  const { id, prices } = found.model;
  // Clouds resell the models of others; where their own list lacks one, the catalogue looks into the maker's.
  const own = list.models.some((candidate) => candidate === found.model);
  const price = priceOf({
    provider,
    model: id,
    prices: found.model_price,
    list: own ? list.id : ownerOf(list, id),
    borrowed: !own,
  });
  return { match: { price, exact: false }, changes: Array.isArray(prices) };
}

/** A name that is an id of the list is that model, whether or not its own pattern says so. */
function lookUpNamed(provider: string, list: Provider, info: ModelInfo, atMs: number): LookUp {
  const changes = Array.isArray(info.prices);
  const prices = pricesInForce(list, info, atMs);
  if (!prices) return { match: undefined, changes };
  const price = priceOf({ provider, model: info.id, prices, list: list.id, borrowed: false });
  return { match: { price, exact: true }, changes };
}

const ownerOf = (list: Provider, id: string): string =>
  (list.fallback_model_providers ?? []).find((other) => listOf(other)?.models.some((m) => m.id === id)) ??
  'another provider';

/**
 * The list's prices at a moment, for people: of one provider, of models whose id contains a text or, where none does,
 * the one that would price such a name. Models without any rate the ledger knows are left out.
 */
export function listPrices(atMs: number, provider?: string, model?: string): Price[] {
  const providers = provider === undefined ? LISTED_PROVIDERS : [provider];
  const named = providers.flatMap((slug) => pricesOf(slug, model ?? '', atMs));
  if (named.length > 0 || provider === undefined || model === undefined) return named;
  const match = lookUp(provider, model, atMs).match;
  return match && hasRates(match.price) ? [match.price] : [];
}

const hasRates = ({ rates }: Price): boolean => Object.keys(rates).length > 0;

function pricesOf(provider: string, part: string, atMs: number): Price[] {
  const list = listOf(provider);
  if (!list) return [];
  const prices: Price[] = [];
  for (const info of list.models) {
    if (!info.id.includes(part)) continue;
    const price = lookUpNamed(provider, list, info, atMs).match?.price;
    if (price && hasRates(price)) prices.push(price);
  }
  return prices;
}

/** Some ids do not match their own pattern ("regional.…"): the list asked here knows nothing but the one model. */
function pricesInForce(list: Provider, info: ModelInfo, atMs: number): ModelPrice | undefined {
  if (!Array.isArray(info.prices)) return info.prices;
  const alone: Provider = { ...list, models: [{ ...info, match: { equals: info.id } }] };
  return calcPrice(ANY_USAGE, info.id, { provider: alone, timestamp: new Date(atMs) })?.model_price;
}
