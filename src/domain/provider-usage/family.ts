import type { UsageClass } from '../usage';
import type { UsageReader } from './usage-reader';

export type Counts = Partial<Record<UsageClass, number>>;

export interface Found {
  readonly counts: Counts;
  /** As the provider names it; absent where it says nothing. */
  readonly serviceTier?: string;
}

/** One shape of usage objects: how it is known, and how it is brought into disjoint classes. */
export interface Family {
  knows(reader: UsageReader, provider: string): boolean;
  read(reader: UsageReader, provider: string): Found;
}

export interface InputParts {
  /** All input, as the provider counts it. */
  readonly total: number;
  readonly cached: number;
  readonly written?: number;
  /** Audio, cached or not. */
  readonly audio?: number;
  readonly cachedAudio?: number;
}

/**
 * Takes cached, written and audio tokens out of an input that includes them. A total smaller than what it is said to
 * include cannot include it: it is then taken as the uncached input alone, so that no token is lost. Cached audio
 * counts as cached; where a provider does not say how much audio was cached, what is left uncached is audio first.
 */
export function inputClasses({ total, cached, written = 0, audio = 0, cachedAudio = 0 }: InputParts): Counts {
  const uncached = cached + written > total ? total : total - cached - written;
  const heard = Math.max(0, audio - cachedAudio);
  const audioInputTokens = audio > total ? heard : Math.min(heard, uncached);
  return {
    inputTokens: Math.max(0, uncached - audioInputTokens),
    cacheReadTokens: cached,
    cacheWrite5mTokens: written,
    audioInputTokens,
  };
}

/** Takes audio out of an output that includes it; one that is smaller does not. */
export function outputClasses(total: number, audio: number): Counts {
  return { outputTokens: audio > total ? total : total - audio, audioOutputTokens: audio };
}
