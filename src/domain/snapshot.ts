import { initialState } from './state';
import type { LedgerState } from './state';

/** Rises with every change of the state's shape: a snapshot of another shape is dropped (casebook 40). */
export const STATE_SCHEMA_VERSION = 2;

// NUL stops at the edge, so no caller's key looks like these.
const BIGINT = '\u0000n';
const MAP = '\u0000m';
const SET = '\u0000s';

/**
 * The state as JSON text. Entries and keys are sorted, so that equal states give equal texts, whichever way they
 * came about: the events of a live state have their keys in the order they were built in, those of a fold sorted.
 */
export function serialiseState(state: LedgerState): string {
  return JSON.stringify({ ...state, index: undefined }, (_key, value: unknown) => {
    if (typeof value === 'bigint') return { [BIGINT]: value.toString() };
    if (value instanceof Map) return { [MAP]: [...(value as Map<string | number, unknown>)].sort(byKey) };
    if (value instanceof Set) return { [SET]: [...(value as Set<string>)].sort() };
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return Object.fromEntries(Object.entries(value).sort(byKey));
    }
    return value;
  });
}

function byKey(a: readonly [string | number, unknown], b: readonly [string | number, unknown]): number {
  return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
}

/** The state of a text that `serialiseState` made. Derived parts are built anew. */
export function restoreState(text: string): LedgerState {
  const plain = JSON.parse(text, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null) return value;
    if (BIGINT in value) return BigInt(value[BIGINT] as string);
    if (MAP in value) return new Map(value[MAP] as [string, unknown][]);
    if (SET in value) return new Set(value[SET] as string[]);
    return value;
  }) as LedgerState;
  const state: LedgerState = { ...plain, index: initialState(plain.ledger).index };
  for (const budget of state.budgets.values()) {
    if (!budget.retired) state.index.add(budget.definition.match, budget);
  }
  return state;
}
