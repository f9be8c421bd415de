export type Enforcement = 'enforce' | 'observe';
export type OnExpiry = 'assume-spent' | 'release';

/** What a workload may set for itself; the rest it takes from the ledger. */
export interface WorkloadSettings {
  readonly minOutputTokens?: number;
  readonly enforcement?: Enforcement;
}

export interface Settings {
  /** IANA name; fixed after the first reservation or charge. */
  readonly timezone: string;
  readonly minOutputTokens: number;
  readonly reservationTtlSeconds: number;
  readonly onExpiry: OnExpiry;
  readonly onNoBudget: 'allow' | 'refuse';
  readonly requireExactPrice: boolean;
  readonly enforcement: Enforcement;
  readonly workloads: Readonly<Record<string, WorkloadSettings>>;
}

export const DEFAULT_SETTINGS: Settings = {
  timezone: 'UTC',
  minOutputTokens: 4096,
  reservationTtlSeconds: 600,
  onExpiry: 'assume-spent',
  onNoBudget: 'allow',
  requireExactPrice: false,
  enforcement: 'enforce',
  workloads: {},
};
