import type { EventType, Recorded } from './events';

/** The shape of each event this version writes. */
export const CURRENT_SCHEMA_VERSION: Readonly<Record<EventType, number>> = {
  LedgerOpened: 1,
  SettingsChanged: 1,
  BudgetDefined: 1,
  BudgetAmended: 1,
  BudgetRetired: 1,
  PriceListed: 1,
  PriceSet: 1,
  PriceRetired: 1,
  SpendEstimated: 1,
  SpendReserved: 1,
  SpendRefused: 1,
  UsageCharged: 1,
  ChargeCorrected: 1,
  ReservationReleased: 1,
  ReservationExpired: 1,
  ReservationExtended: 1,
  AlertRaised: 1,
};

/** An event as it stands in the log, of whatever version. */
export type RawEvent = Omit<Recorded, 'type' | 'data'> & { readonly type: string; readonly data: unknown };

/** Brings an event's data from one version to the next. */
export type Upcaster = (data: unknown) => unknown;

export interface Upcasters {
  readonly current: Readonly<Record<string, number>>;
  /** By type; `steps[n]` brings version n + 1 to n + 2. */
  readonly steps: Readonly<Record<string, readonly Upcaster[]>>;
}

const UPCASTERS: Upcasters = { current: CURRENT_SCHEMA_VERSION, steps: {} };

/** An event this version cannot read. It is never skipped: whoever meets it stops. */
export class UnknownEventError extends Error {
  override readonly name = 'UnknownEventError';
  constructor(
    readonly type: string,
    readonly schemaVersion: number,
    readonly revision: number,
  ) {
    super(`event ${type} version ${schemaVersion} at revision ${revision} is not known to this version`);
  }
}

/** Reads an event's bytes and brings it up to today's shape. Throws UnknownEventError. */
export function decodeEvent(bytes: Buffer, upcasters: Upcasters = UPCASTERS): Recorded {
  return upcast(JSON.parse(bytes.toString('utf8')) as RawEvent, upcasters);
}

export function upcast(raw: RawEvent, { current, steps }: Upcasters = UPCASTERS): Recorded {
  const wanted = Object.hasOwn(current, raw.type) ? current[raw.type] : undefined;
  const { schemaVersion } = raw;
  const known = wanted !== undefined && Number.isInteger(schemaVersion) && schemaVersion >= 1;
  if (!known || schemaVersion > wanted) {
    throw new UnknownEventError(raw.type, schemaVersion, raw.revision);
  }
  if (schemaVersion === wanted) return raw as Recorded;
  let { data } = raw;
  for (let version = schemaVersion; version < wanted; version += 1) {
    const step = steps[raw.type]?.[version - 1];
    if (!step) throw new UnknownEventError(raw.type, version, raw.revision);
    data = step(data);
  }
  return { ...raw, data, schemaVersion: wanted } as Recorded;
}
