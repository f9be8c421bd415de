import { Query } from '@nestjs/cqrs';
import type { Attempt } from '../domain/attempt';
import type { Price } from '../domain/prices';
import type { Settings } from '../domain/settings';
import type { BucketView, BudgetView } from '../read-models/budgets/budget-queries';
import type { Page, PageRequest } from '../read-models/paging';
import type { LedgerView } from '../read-models/settings/settings-queries';
import type { AttemptState } from '../read-models/spend/attempt-row';
import type { AttemptView } from '../read-models/spend/attempt-view';
import type { SpendGroup, SpendRequest } from '../read-models/spend/spend-queries';
import type { StateView } from './history/state-view';
import type { Verification } from './history/verification';
import type { Headroom } from './headroom';

/** A question about one ledger; `after`: what it must have seen. */
export abstract class LedgerQuery<R> extends Query<R> {
  constructor(
    readonly ledger: string,
    readonly after: number | undefined,
  ) {
    super();
  }
}

export class GetRequest extends LedgerQuery<readonly AttemptView[]> {
  constructor(
    ledger: string,
    after: number | undefined,
    readonly requestId: string,
  ) {
    super(ledger, after);
  }
}
export class GetReservation extends LedgerQuery<AttemptView> {
  constructor(
    ledger: string,
    after: number | undefined,
    readonly id: string,
  ) {
    super(ledger, after);
  }
}
export class GetCharge extends LedgerQuery<AttemptView> {
  constructor(
    ledger: string,
    after: number | undefined,
    readonly id: string,
  ) {
    super(ledger, after);
  }
}
export class ListReservations extends LedgerQuery<Page<AttemptView>> {
  constructor(
    ledger: string,
    after: number | undefined,
    readonly state: AttemptState | undefined,
    readonly page: PageRequest,
  ) {
    super(ledger, after);
  }
}
export class ListBudgets extends LedgerQuery<Page<BudgetView>> {
  constructor(
    ledger: string,
    after: number | undefined,
    readonly page: PageRequest,
  ) {
    super(ledger, after);
  }
}
export class GetBudget extends LedgerQuery<BudgetView> {
  constructor(
    ledger: string,
    after: number | undefined,
    readonly id: string,
  ) {
    super(ledger, after);
  }
}
export class ListBalances extends LedgerQuery<Page<BucketView>> {
  constructor(
    ledger: string,
    after: number | undefined,
    readonly id: string,
    readonly page: PageRequest,
  ) {
    super(ledger, after);
  }
}
export class GetSpend extends LedgerQuery<Page<SpendGroup>> {
  constructor(
    ledger: string,
    after: number | undefined,
    readonly request: Omit<SpendRequest, 'fromDay' | 'toDay'>,
    readonly from: string | undefined,
    readonly to: string | undefined,
  ) {
    super(ledger, after);
  }
}
export class GetSettings extends LedgerQuery<Settings> {}
export class ListPrices extends LedgerQuery<readonly Price[]> {
  constructor(
    ledger: string,
    after: number | undefined,
    readonly provider: string | undefined,
    readonly model: string | undefined,
  ) {
    super(ledger, after);
  }
}
export class GetHeadroom extends LedgerQuery<Headroom> {
  constructor(
    ledger: string,
    after: number | undefined,
    readonly of: Partial<Attempt> & { readonly provider?: string; readonly fingerprint?: string },
  ) {
    super(ledger, after);
  }
}
export class GetState extends LedgerQuery<StateView> {
  constructor(
    ledger: string,
    readonly atMs: number | undefined,
    readonly revision: number | undefined,
  ) {
    super(ledger, undefined);
  }
}
export class Verify extends LedgerQuery<Verification> {}
export class ListLedgers extends Query<readonly LedgerView[]> {}
