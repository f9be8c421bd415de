import { USAGE_CLASSES } from './usage';
import type { UsageClass } from './usage';

/** Priced classes: the usage classes and `requests`, a flat fee a call. */
export type PricedClass = UsageClass | 'requests';
export const PRICED_CLASSES: readonly PricedClass[] = [...USAGE_CLASSES, 'requests'];

/**
 * A rate as it stands in events and at the edge: a decimal USD string per million tokens (token classes) or per
 * unit (images, audioSeconds, searches, requests); with tiers, the whole request is priced at the rate of the
 * highest tier whose `above` its total input tokens exceed.
 */
export type RateText =
  | string
  | { readonly base: string; readonly tiers: readonly { readonly above: number; readonly rate: string }[] };
export type RatesText = Partial<Readonly<Record<PricedClass, RateText>>>;

/** A price: what one model costs. `priceId` names exactly these rates for ever. */
export interface Price {
  readonly priceId: string;
  readonly provider: string;
  /** The catalogue's id, or the name the override was set for. */
  readonly model: string;
  readonly source: 'catalogue' | 'override';
  /** Where the rates come from ("@pydantic/genai-prices 0.1.8", "operator", "policy"). */
  readonly origin: string;
  readonly rates: RatesText;
  /** Rates of service tiers other than the standard one ("batch", "flex", "priority"). */
  readonly serviceTiers?: Readonly<Record<string, RatesText>>;
  /** An embedding model has no output. */
  readonly embedding?: boolean;
}

/** A price as the catalogue found it for a name. */
export interface CatalogueMatch {
  readonly price: Price;
  /** Whether the name sent is the catalogue's id itself, and not a prefix or pattern of it. */
  readonly exact: boolean;
}

/**
 * The catalogue, handed into `decide`: the price in force for a model's name at a moment (ms since epoch), or
 * undefined. Pure: the same arguments give the same answer as long as the process lives.
 */
export type Catalogue = (provider: string, model: string, atMs: number) => CatalogueMatch | undefined;

/** Nano-dollars per million units, by class, with tiers. */
export interface Rate {
  readonly base: bigint;
  readonly tiers: readonly { readonly above: number; readonly rate: bigint }[];
}
export type Rates = Partial<Readonly<Record<PricedClass, Rate>>>;
