declare const fingerprintBrand: unique symbol;
/** Lower-case hex SHA-256 of an API key's UTF-8 bytes. The key itself never enters the service. */
export type Fingerprint = string & { readonly [fingerprintBrand]: 'sha256-hex' };

const FINGERPRINT = /^[0-9a-f]{64}$/;
export const isFingerprint = (text: string): text is Fingerprint => FINGERPRINT.test(text);

/** A paying account at a provider. */
export interface Account {
  readonly provider: string;
  readonly fingerprint: Fingerprint;
}

export type Tags = Readonly<Record<string, string>>;

/** What budgets match on: who pays, which model, what for, on whose behalf. */
export interface Attempt {
  readonly account: Account;
  /** The name the caller sent. */
  readonly model: string;
  /** The catalogue's id for it, where there is one: another spelling must not slip by a budget. */
  readonly modelId?: string;
  readonly workload?: string;
  readonly subject?: string;
  readonly conversation?: string;
  readonly tags?: Tags;
}

/** A dimension of an attempt: `each` of a budget and `by` of a report name these; tags are `tag.<key>`. */
export type Dimension =
  'provider' | 'account' | 'model' | 'workload' | 'subject' | 'conversation' | `tag.${string}`;

/** The attempt's value in a dimension, or null. `model` gives the catalogue's id where known, so that spellings share a bucket. */
export function valueOf(attempt: Attempt, dimension: Dimension): string | null {
  switch (dimension) {
    case 'provider':
      return attempt.account.provider;
    case 'account':
      return attempt.account.fingerprint;
    case 'model':
      return attempt.modelId ?? attempt.model;
    case 'workload':
      return attempt.workload ?? null;
    case 'subject':
      return attempt.subject ?? null;
    case 'conversation':
      return attempt.conversation ?? null;
    default: {
      const key = dimension.slice(4);
      const tags = attempt.tags;
      return tags && Object.hasOwn(tags, key) ? (tags[key] ?? null) : null;
    }
  }
}
