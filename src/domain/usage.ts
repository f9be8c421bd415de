/**
 * Disjoint classes of what a provider bills (DESIGN 9): a token is in exactly one of them. `inputTokens` is the
 * uncached input only; `outputTokens` includes reasoning. `requests` is a flat fee a call, counted by the ledger itself.
 */
export const USAGE_CLASSES = [
  'inputTokens',
  'cacheReadTokens',
  'cacheWrite5mTokens',
  'cacheWrite1hTokens',
  'outputTokens',
  'audioInputTokens',
  'audioOutputTokens',
  'images',
  'audioSeconds',
  'searches',
] as const;

export type UsageClass = (typeof USAGE_CLASSES)[number];
/** Counts by class; a class left out is 0. Whole numbers, at most 10⁹ each (audioSeconds rounded up to a second). */
export type Usage = Partial<Readonly<Record<UsageClass, number>>>;

/** The largest count the edge accepts in any class. */
export const MAX_COUNT = 1_000_000_000;

/** Classes priced per million tokens; the others are priced per unit. */
export const TOKEN_CLASSES: ReadonlySet<UsageClass> = new Set<UsageClass>([
  'inputTokens',
  'cacheReadTokens',
  'cacheWrite5mTokens',
  'cacheWrite1hTokens',
  'outputTokens',
  'audioInputTokens',
  'audioOutputTokens',
]);
