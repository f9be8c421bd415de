import { Query, QueryHandler } from '@nestjs/cqrs';
import type { IQueryHandler } from '@nestjs/cqrs';
import type { BudgetDefinition } from '../domain/budget';
import type { BucketView, BudgetView, CurrentBalance } from '../read-models/budgets/budget-queries';
import type { Page, PageRequest } from '../read-models/paging';
import { LedgerReads } from './ledger-reads';
import { QueryError } from './query-errors';

/** A budget: its definition, and how its current window stands. */
export type BudgetAnswer = BudgetDefinition & {
  readonly generation: number;
  readonly retired?: true;
  /** Absent where it is retired. */
  readonly current?: CurrentBalance;
};

const MODELS = ['budgets', 'settings'] as const;

export class ListBudgets extends Query<Page<BudgetAnswer>> {
  constructor(
    readonly ledger: string,
    readonly page: PageRequest & { readonly includeRetired?: boolean },
    readonly after?: number,
  ) {
    super();
  }
}

@QueryHandler(ListBudgets)
export class ListBudgetsHandler implements IQueryHandler<ListBudgets> {
  constructor(private readonly reads: LedgerReads) {}

  async execute({ ledger, page, after }: ListBudgets): Promise<Page<BudgetAnswer>> {
    await this.reads.seen(ledger, MODELS, after);
    const { data, ...rest } = await this.reads.budgets.list(ledger, this.reads.services.now(), page);
    return { ...rest, data: data.map(budgetAnswer) };
  }
}

export class GetBudget extends Query<BudgetAnswer> {
  constructor(
    readonly ledger: string,
    readonly id: string,
    readonly after?: number,
  ) {
    super();
  }
}

@QueryHandler(GetBudget)
export class GetBudgetHandler implements IQueryHandler<GetBudget> {
  constructor(private readonly reads: LedgerReads) {}

  async execute({ ledger, id, after }: GetBudget): Promise<BudgetAnswer> {
    await this.reads.seen(ledger, MODELS, after);
    const found = await this.reads.budgets.budget(ledger, id, this.reads.services.now());
    if (!found) throw noBudget();
    return budgetAnswer(found);
  }
}

/** One entry a bucket of the current window. */
export class ListBalances extends Query<Page<BucketView>> {
  constructor(
    readonly ledger: string,
    readonly id: string,
    readonly page: PageRequest,
    readonly after?: number,
  ) {
    super();
  }
}

@QueryHandler(ListBalances)
export class ListBalancesHandler implements IQueryHandler<ListBalances> {
  constructor(private readonly reads: LedgerReads) {}

  async execute({ ledger, id, page, after }: ListBalances): Promise<Page<BucketView>> {
    await this.reads.seen(ledger, MODELS, after);
    const found = await this.reads.budgets.balances(ledger, id, this.reads.services.now(), page);
    if (!found) throw noBudget();
    return found;
  }
}

const noBudget = (): QueryError => new QueryError('budget_not_found', 'no such budget');

function budgetAnswer({ budget, generation, retired, current }: BudgetView): BudgetAnswer {
  return { ...budget, generation, ...(retired && { retired }), ...(current && { current }) };
}
