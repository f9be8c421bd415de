import type { ChangeSettings, OpenLedger, RetirePrice, SetPrice } from './commands';
import type { Context, Decision } from './decision';
import type { LedgerEvent } from './events';
import type { Price } from './prices';
import { repricings } from './repricing';
import { DEFAULT_SETTINGS } from './settings';
import type { Settings } from './settings';
import { overrideAt, waitsFor } from './state';
import type { LedgerState } from './state';
import { isTimezone } from './windows';

/** Corrections made together with the price they wait for; the rest follows with the expiries. */
const REPRICED_AT_ONCE = 256;

export function decideOpening(command: OpenLedger, state: LedgerState): Decision {
  if (state.opened) return decideSettings({ type: 'ChangeSettings', settings: command.settings }, state);
  const settings = merged(DEFAULT_SETTINGS, command.settings);
  const bad = timezoneFault(settings);
  if (bad) return bad;
  const position = state.revision + 1;
  return {
    kind: 'accepted',
    events: [{ type: 'LedgerOpened', data: { settings } }],
    answer: { kind: 'settings', settings, opened: true, position },
  };
}

/** Fields left out keep their values; the timezone is fixed after the first reservation or charge. */
export function decideSettings(command: ChangeSettings, state: LedgerState): Decision {
  const settings = merged(state.settings, command.settings);
  const bad = timezoneFault(settings);
  if (bad) return bad;
  if (settings.timezone !== state.settings.timezone && state.spent) {
    const detail = `the timezone is ${state.settings.timezone} since the first reservation or charge`;
    return { kind: 'rejected', rejection: { code: 'timezone_fixed', detail } };
  }
  if (same(settings, state.settings)) {
    return { kind: 'unchanged', answer: { kind: 'settings', settings, position: state.revision } };
  }
  const position = state.revision + 1;
  return {
    kind: 'accepted',
    events: [{ type: 'SettingsChanged', data: { settings } }],
    answer: { kind: 'settings', settings, position },
  };
}

function merged(old: Settings, change: Partial<Settings>): Settings {
  const given = Object.fromEntries(
    Object.entries(change as Record<string, unknown>).filter(([, value]) => value !== undefined),
  );
  return { ...old, ...given };
}

function timezoneFault(settings: Settings): Decision | undefined {
  if (isTimezone(settings.timezone)) return undefined;
  const faults = [{ path: 'timezone', message: 'is not an IANA timezone' }];
  return { kind: 'rejected', rejection: { code: 'invalid', detail: 'the settings cannot be used', faults } };
}

/** Structural equality of plain data, whatever the order of keys; undefined counts as absent. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (!isObject(a) || !isObject(b)) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => same(a[key], b[key]));
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** An override of the catalogue; charges that waited for a price are corrected. */
export function decidePrice(command: SetPrice, state: LedgerState, context: Context): Decision {
  const { provider, model, rates, serviceTiers, embedding, origin } = command;
  const old = overrideAt(state, provider, model, context.nowMs);
  if (
    old &&
    same({ r: old.rates, s: old.serviceTiers, e: old.embedding }, { r: rates, s: serviceTiers, e: embedding })
  ) {
    return { kind: 'unchanged', answer: { kind: 'price', price: old, position: state.revision } };
  }
  const revision = state.revision + 1;
  const price: Price = {
    priceId: `prc_${revision}_${context.nonce}`,
    provider,
    model,
    source: 'override',
    origin,
    rates,
    serviceTiers,
    embedding,
  };
  const events: LedgerEvent[] = [{ type: 'PriceSet', data: { price } }];
  events.push(...repricings(state, waitingFor(price, state), price, context));
  return {
    kind: 'accepted',
    events,
    answer: { kind: 'price', price, position: state.revision + events.length },
  };
}

function waitingFor(price: Price, state: LedgerState): string[] {
  const waiting: string[] = [];
  for (const id of state.unpriced) {
    const charge = state.charges.get(id);
    if (charge && waitsFor(price, charge)) waiting.push(id);
    if (waiting.length === REPRICED_AT_ONCE) break;
  }
  return waiting;
}

export function decidePriceRetirement(command: RetirePrice, state: LedgerState, context: Context): Decision {
  const { provider, model } = command;
  const old = overrideAt(state, provider, model, context.nowMs);
  if (!old) {
    const detail = `no price is set for ${provider}/${model}; the catalogue's own cannot be retired`;
    return { kind: 'rejected', rejection: { code: 'price_not_found', detail } };
  }
  return {
    kind: 'accepted',
    events: [{ type: 'PriceRetired', data: { provider, model, priceId: old.priceId } }],
    answer: { kind: 'price-retired', provider, model, position: state.revision + 1 },
  };
}
