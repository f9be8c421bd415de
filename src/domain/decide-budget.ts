import type { BudgetDefinition } from './budget';
import type { DefineBudget, RetireBudget } from './commands';
import type { Context, Decision } from './decision';
import { same } from './decide-policy';
import type { BudgetAmended, BudgetDefined } from './events';
import { parseMoney } from './money';
import type { BudgetState, LedgerState } from './state';
import { toMs, windowAt } from './windows';

type Fault = { readonly path: string; readonly message: string };

/**
 * RULES 3: limit, set-asides, mode, thresholds and a fixed `to` are amended, holds stand; a change of match, each or
 * window is a new generation. What is already in the window counts, from history, unless zero is meant.
 */
export function decideBudget(command: DefineBudget, state: LedgerState, context: Context): Decision {
  const { budget } = command;
  const faults = budgetFaults(budget);
  if (faults.length > 0) {
    return { kind: 'rejected', rejection: { code: 'invalid', detail: 'the budget cannot be used', faults } };
  }
  const old = state.budgets.get(budget.id);
  const position = state.revision + 1;
  if (!old || old.retired || isNewGeneration(old.definition, budget)) {
    return define(command, (old?.generation ?? 0) + 1, position, state, context);
  }
  if (same(old.definition, budget)) {
    const answer = { kind: 'budget' as const, budget, generation: old.generation, position: state.revision };
    return { kind: 'unchanged', answer };
  }
  return amend(command, old, position, state, context);
}

function define(
  { budget, countFrom }: DefineBudget,
  generation: number,
  position: number,
  state: LedgerState,
  context: Context,
): Decision {
  const fromMs = countFrom === 'now' ? undefined : historyFrom(budget, state, context);
  if (fromMs !== undefined && !context.opening) return { kind: 'needs-opening', fromMs };
  const opening = fromMs === undefined ? [] : (context.opening ?? []);
  const event: BudgetDefined = { type: 'BudgetDefined', data: { budget, generation, countFrom, opening } };
  return { kind: 'accepted', events: [event], answer: { kind: 'budget', budget, generation, position } };
}

function amend(
  { budget }: DefineBudget,
  old: BudgetState,
  position: number,
  state: LedgerState,
  context: Context,
): Decision {
  const { generation } = old;
  const matchesOf = (definition: BudgetDefinition) => definition.setAsides.map(({ match }) => match);
  const recount =
    !same(matchesOf(old.definition), matchesOf(budget)) || !same(old.definition.window, budget.window);
  const fromMs = recount ? historyFrom(budget, state, context) : undefined;
  if (fromMs !== undefined && !context.opening) return { kind: 'needs-opening', fromMs };
  const opening = fromMs === undefined ? undefined : context.opening;
  const event: BudgetAmended = { type: 'BudgetAmended', data: { budget, generation, opening } };
  return { kind: 'accepted', events: [event], answer: { kind: 'budget', budget, generation, position } };
}

/** Where history must be folded from, ms; undefined where nothing can count yet. */
function historyFrom(budget: BudgetDefinition, state: LedgerState, { nowMs }: Context): number | undefined {
  if (!state.spent) return undefined;
  const { fromMs } = windowAt(budget.window, state.settings.timezone, nowMs);
  // Usage may be recorded for a moment up to five minutes ahead.
  if (fromMs !== undefined && fromMs > nowMs + 300_000) return undefined;
  return fromMs ?? 0;
}

/** A change of what is counted, or when, starts the counting anew; a later end of a fixed window does not. */
export function isNewGeneration(old: BudgetDefinition, now: BudgetDefinition): boolean {
  const window = (rule: BudgetDefinition['window']) =>
    typeof rule === 'object' ? { from: toMs(rule.from) } : rule;
  return (
    !same(old.match, now.match) || !same(old.each, now.each) || !same(window(old.window), window(now.window))
  );
}

/** What no shape can say about a budget: money and times that do not fit together. */
export function budgetFaults(budget: BudgetDefinition): Fault[] {
  const faults: Fault[] = [];
  const limit = parseMoney(budget.limit);
  if (limit < 0n) faults.push({ path: 'limit', message: 'is negative' });
  let aside = 0n;
  budget.setAsides.forEach(({ amount }, i) => {
    const nanos = parseMoney(amount);
    aside += nanos;
    if (nanos < 0n) faults.push({ path: `setAsides.${i}.amount`, message: 'is negative' });
  });
  if (aside > limit && limit >= 0n)
    faults.push({ path: 'setAsides', message: 'are more than the limit together' });
  const { window } = budget;
  if (typeof window === 'object' && !(toMs(window.from) < toMs(window.to))) {
    faults.push({ path: 'window.to', message: 'is not after window.from' });
  }
  return faults;
}

export function decideBudgetRetirement(command: RetireBudget, state: LedgerState): Decision {
  const old = state.budgets.get(command.id);
  if (!old || old.retired) {
    return { kind: 'rejected', rejection: { code: 'budget_not_found', detail: `no budget ${command.id}` } };
  }
  return {
    kind: 'accepted',
    events: [{ type: 'BudgetRetired', data: { id: old.id, generation: old.generation } }],
    answer: { kind: 'budget-retired', id: old.id, position: state.revision + 1 },
  };
}
