import { parseMoney } from './money';
import { anthropic } from './provider-usage/anthropic';
import { bedrock } from './provider-usage/bedrock';
import { decimalUsd } from './provider-usage/decimal-usd';
import type { Family } from './provider-usage/family';
import { gemini } from './provider-usage/gemini';
import { chat, deepseek, duration, responses } from './provider-usage/openai';
import { UsageReader } from './provider-usage/usage-reader';
import type { Fields, UsageFault } from './provider-usage/usage-reader';
import { MAX_COUNT } from './usage';
import type { Usage } from './usage';

export { decimalUsd };
export type { UsageFault };

/** A provider's usage object in the ledger's own words. */
export interface NormalisedUsage {
  readonly usage: Usage;
  /** Decimal USD. */
  readonly reportedCost?: string;
  /** Decimal USD; only where the customer's own upstream key was used, so that it comes on top. */
  readonly upstreamCost?: string;
  /** Absent for the standard tier. */
  readonly serviceTier?: string;
  /** Where there is any, nothing else here may be booked. */
  readonly faults: readonly UsageFault[];
}

/** The first that knows an object reads it. */
const FAMILIES: readonly Family[] = [deepseek, anthropic, bedrock, gemini, chat, responses, duration];

/**
 * Brings a provider's usage object into disjoint classes (DESIGN 9): where its input includes cached tokens they are
 * taken out, where its output leaves reasoning out it is added. The shape decides, the provider (a slug) only where
 * shapes are alike: resellers pass on the shapes of others. Counts that are no whole numbers from 0 to 10⁹ are
 * faults, as is a shape nobody knows; parts that exceed their total are not (see `inputClasses`).
 */
export function normaliseUsage(provider: string | undefined, raw: unknown): NormalisedUsage {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    return { usage: {}, faults: [{ path: '', message: 'is not an object' }] };
  }
  const reader = new UsageReader(raw as Fields);
  const slug = provider ?? '';
  const family = FAMILIES.find((candidate) => candidate.knows(reader, slug));
  if (!family) return { usage: {}, faults: [unknownShape(raw)] };
  const { counts, serviceTier } = family.read(reader, slug);
  const usage: Record<string, number> = {};
  for (const [name, count] of Object.entries(counts)) {
    if (count > MAX_COUNT) reader.fault([], `adds up to more than ${MAX_COUNT} ${name}`);
    else if (count > 0) usage[name] = count;
  }
  return { usage, ...costs(reader), serviceTier: tier(reader, serviceTier), faults: reader.faults };
}

function unknownShape(raw: object): UsageFault {
  // What may be a key pasted into the wrong place is not repeated.
  const seen = Object.keys(raw)
    .filter((name) => /^(?!sk[^a-z])[A-Za-z_]{1,32}$/.test(name))
    .slice(0, 20);
  return { path: '', message: `has no usage of a known provider; fields seen: ${seen.join(', ') || 'none'}` };
}

/**
 * What a provider says a call cost: xAI in ticks of 10⁻¹⁰ dollars, OpenRouter as `cost`, Perplexity as its total.
 * OpenRouter's cost of a call on the customer's own key is its fee alone, and the upstream's cost comes on top.
 */
function costs(r: UsageReader): Pick<NormalisedUsage, 'reportedCost' | 'upstreamCost'> {
  const ticks = r.cost(10, 'cost_in_usd_ticks');
  const reportedCost = ticks ?? (r.isObject('cost') ? r.cost(0, 'cost', 'total_cost') : r.cost(0, 'cost'));
  const upstream = r.cost(0, 'cost_details', 'upstream_inference_cost');
  if (reportedCost === undefined || upstream === undefined) return { reportedCost };
  // Before there was the flag: the fee on one's own key is a fraction of the upstream's cost, a resale is not.
  const ownKey = r.flag('is_byok') ?? parseMoney(upstream) > parseMoney(reportedCost);
  return { reportedCost, upstreamCost: ownKey ? upstream : undefined };
}

const STANDARD = new Set(['standard', 'default', 'auto', 'on_demand']);

function tier(r: UsageReader, named: string | undefined): string | undefined {
  const slug = named?.toLowerCase();
  if (slug === undefined || slug === '' || STANDARD.has(slug)) return undefined;
  if (/^[a-z0-9][a-z0-9_.-]{0,63}$/.test(slug)) return slug;
  r.fault(['service_tier'], 'is not a service tier');
  return undefined;
}
