import { Inject } from '@nestjs/common';
import type { Type } from '@nestjs/common';
import { QueryHandler } from '@nestjs/cqrs';
import type { IQueryHandler } from '@nestjs/cqrs';
import type { Price } from '../domain/prices';
import type { Settings } from '../domain/settings';
import { dayOf } from '../domain/windows';
import { BudgetQueries } from '../read-models/budgets/budget-queries';
import { SettingsQueries } from '../read-models/settings/settings-queries';
import { AttemptQueries } from '../read-models/spend/attempt-queries';
import { SpendQueries } from '../read-models/spend/spend-queries';
import { headroom } from './headroom';
import {
  GetBudget,
  GetCharge,
  GetHeadroom,
  GetRequest,
  GetReservation,
  GetSettings,
  GetSpend,
  GetState,
  LedgerQuery,
  ListBalances,
  ListBudgets,
  ListLedgers,
  ListPrices,
  ListReservations,
  Verify,
} from './messages';
import { QueryError } from './query-errors';
import { ReadServices } from './read-services';

const WAIT_MS = 5_000;

/** Waits until the read models in question have seen a position: beyond the log's head at once an error. */
export async function seen(
  services: ReadServices,
  ledger: string,
  after: number | undefined,
  models?: readonly string[],
): Promise<void> {
  if (!(await services.exists(ledger))) throw new QueryError('ledger_not_found', `no ledger ${ledger}`);
  if (after === undefined) return;
  const head = (await services.store.head(ledger))?.revision ?? -1;
  if (after > head)
    throw new QueryError('position_ahead', `position ${after} is beyond the log's head ${head}`);
  if ((await services.projection.waitFor(ledger, after, WAIT_MS, models)) === 'behind') {
    throw new QueryError('projection_behind', `position ${after} is not projected yet`);
  }
}

function found<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new QueryError('not_found', what);
  return value;
}

type QueryClass<Q> = abstract new (...args: never[]) => Q;

/** A handler for one query of a ledger, once its read models have seen what the caller has. */
function answers<R, Q extends LedgerQuery<R>>(
  query: QueryClass<Q>,
  models: readonly string[],
  answer: (services: ReadServices, query: Q) => Promise<R>,
): Type<IQueryHandler> {
  @QueryHandler(query)
  class LedgerQueryHandler {
    constructor(@Inject(ReadServices) private readonly services: ReadServices) {}

    async execute(asked: Q): Promise<R> {
      await seen(this.services, asked.ledger, asked.after, models);
      return answer(this.services, asked);
    }
  }
  return LedgerQueryHandler;
}

const settingsOf = async ({ pool }: ReadServices, ledger: string): Promise<Settings> =>
  found(await new SettingsQueries(pool).settings(ledger), 'the settings are not projected yet');

@QueryHandler(ListLedgers)
class ListLedgersHandler implements IQueryHandler<ListLedgers> {
  constructor(@Inject(ReadServices) private readonly services: ReadServices) {}

  execute() {
    return new SettingsQueries(this.services.pool).ledgers();
  }
}

async function prices(
  services: ReadServices,
  { ledger, provider, model }: ListPrices,
): Promise<readonly Price[]> {
  const overrides = (await new SettingsQueries(services.pool).overrides(ledger))
    .map(({ price }) => price)
    .filter(
      (price) =>
        (provider === undefined || price.provider === provider) &&
        (model === undefined || price.model.includes(model)),
    );
  const own = new Set(overrides.map((price) => `${price.provider}/${price.model}`));
  const listed = services.listPrices(services.now(), provider, model);
  return [...overrides, ...listed.filter((price) => !own.has(`${price.provider}/${price.model}`))];
}

/** Moments become civil days of the ledger's timezone; `to` is exclusive, so a moment within a day takes that day along. */
async function spend(services: ReadServices, { ledger, request, from, to }: GetSpend) {
  const { timezone } = await settingsOf(services, ledger);
  const isDay = (text: string) => /^\d{4}-\d{2}-\d{2}$/.test(text);
  const day = (text: string) => (isDay(text) ? text : dayOf(timezone, Date.parse(text)));
  const until = to === undefined || isDay(to) ? to : dayOf(timezone, Date.parse(to) - 1 + 86_400_000);
  return new SpendQueries(services.pool).spend(ledger, {
    ...request,
    fromDay: from === undefined ? undefined : day(from),
    toDay: until,
  });
}

export const QUERY_HANDLERS = [
  ListLedgersHandler,
  answers(GetRequest, ['spend'], async ({ pool }, { ledger, requestId }) => {
    const attempts = await new AttemptQueries(pool).request(ledger, requestId);
    return found(attempts.length > 0 ? attempts : undefined, `no request ${requestId}`);
  }),
  answers(GetReservation, ['spend'], async ({ pool }, { ledger, id }) =>
    found(await new AttemptQueries(pool).reservation(ledger, id), `no reservation ${id}`),
  ),
  answers(GetCharge, ['spend'], async ({ pool }, { ledger, id }) =>
    found(await new AttemptQueries(pool).charge(ledger, id), `no charge ${id}`),
  ),
  answers(ListReservations, ['spend'], ({ pool }, { ledger, state, page }) =>
    new AttemptQueries(pool).reservations(ledger, state, page),
  ),
  answers(ListBudgets, ['budgets'], ({ pool, now }, { ledger, page }) =>
    new BudgetQueries(pool).list(ledger, now(), page),
  ),
  answers(GetBudget, ['budgets'], async ({ pool, now }, { ledger, id }) =>
    found(await new BudgetQueries(pool).budget(ledger, id, now()), `no budget ${id}`),
  ),
  answers(ListBalances, ['budgets'], async ({ pool, now }, { ledger, id, page }) =>
    found(await new BudgetQueries(pool).balances(ledger, id, now(), page), `no budget ${id}`),
  ),
  answers(GetSpend, ['spend', 'settings'], spend),
  answers(GetSettings, ['settings'], (services, { ledger }) => settingsOf(services, ledger)),
  answers(ListPrices, ['settings'], prices),
  answers(GetHeadroom, ['budgets', 'settings'], async (services, { ledger, of }) =>
    headroom(services, ledger, of, (await settingsOf(services, ledger)).timezone),
  ),
  answers(GetState, [], ({ history }, { ledger, atMs, revision }) => history.state(ledger, atMs, revision)),
  answers(Verify, ['spend', 'budgets'], ({ history }, { ledger }) => history.verify(ledger)),
];
