import { Controller, Get, Inject, Param, Query } from '@nestjs/common';
import { QueryBus } from '@nestjs/cqrs';
import { GetCharge, GetRequest, GetReservation, ListReservations } from '../../queries/attempts';
import { GetBudget, ListBalances, ListBudgets } from '../../queries/budgets';
import { GetHeadroom } from '../../queries/headroom';
import { GetState, VerifyLedger } from '../../queries/history/history';
import { ListPrices } from '../../queries/prices';
import { GetSettings, ListLedgers } from '../../queries/settings';
import { GetSpend } from '../../queries/spend';
import { parsed } from '../problems/problem';
import * as schemas from './query-schemas';

/** Queries over HTTP: thin over the query bus. */
@Controller('v1/ledgers')
export class ReadsController {
  constructor(@Inject(QueryBus) private readonly bus: QueryBus) {}

  @Get()
  ledgers(@Query() query: unknown) {
    parsed(schemas.nothing, query);
    return this.bus.execute(new ListLedgers());
  }

  @Get(':ledger/requests/:id')
  request(@Param('ledger') ledger: string, @Param('id') id: string, @Query() query: unknown) {
    const { after } = parsed(schemas.onlyAfter, query);
    return this.bus.execute(new GetRequest(ledger, parsed(schemas.requestId, id), after));
  }

  @Get(':ledger/reservations')
  reservations(@Param('ledger') ledger: string, @Query() query: unknown) {
    const { after, state, ...page } = parsed(schemas.reservations, query);
    return this.bus.execute(new ListReservations(ledger, state, page, after));
  }

  @Get(':ledger/reservations/:id')
  reservation(@Param('ledger') ledger: string, @Param('id') id: string, @Query() query: unknown) {
    return this.bus.execute(new GetReservation(ledger, id, parsed(schemas.onlyAfter, query).after));
  }

  @Get(':ledger/charges/:id')
  charge(@Param('ledger') ledger: string, @Param('id') id: string, @Query() query: unknown) {
    return this.bus.execute(new GetCharge(ledger, id, parsed(schemas.onlyAfter, query).after));
  }

  @Get(':ledger/budgets')
  budgets(@Param('ledger') ledger: string, @Query() query: unknown) {
    const { after, ...page } = parsed(schemas.budgets, query);
    return this.bus.execute(new ListBudgets(ledger, page, after));
  }

  @Get(':ledger/budgets/:id')
  budget(@Param('ledger') ledger: string, @Param('id') id: string, @Query() query: unknown) {
    const { after } = parsed(schemas.onlyAfter, query);
    return this.bus.execute(new GetBudget(ledger, parsed(schemas.budgetId, id), after));
  }

  @Get(':ledger/budgets/:id/balances')
  balances(@Param('ledger') ledger: string, @Param('id') id: string, @Query() query: unknown) {
    const { after, ...page } = parsed(schemas.paged, query);
    return this.bus.execute(new ListBalances(ledger, parsed(schemas.budgetId, id), page, after));
  }

  @Get(':ledger/spend')
  spend(@Param('ledger') ledger: string, @Query() query: unknown) {
    const { after, from, to, by = [], ...page } = parsed(schemas.spend, query);
    return this.bus.execute(new GetSpend(ledger, { by, ...page }, from, to, after));
  }

  @Get(':ledger/settings')
  settings(@Param('ledger') ledger: string, @Query() query: unknown) {
    return this.bus.execute(new GetSettings(ledger, parsed(schemas.onlyAfter, query).after));
  }

  @Get(':ledger/prices')
  prices(@Param('ledger') ledger: string, @Query() query: unknown) {
    const { after, provider, model, ...page } = parsed(schemas.prices, query);
    return this.bus.execute(new ListPrices(ledger, { provider, model }, page, after));
  }

  @Get(':ledger/headroom')
  headroom(@Param('ledger') ledger: string, @Query() query: unknown) {
    const { after, question } = parsed(schemas.headroom, query);
    return this.bus.execute(new GetHeadroom(ledger, question, after));
  }

  @Get(':ledger/state')
  state(@Param('ledger') ledger: string, @Query() query: unknown) {
    const { after, at, revision } = parsed(schemas.state, query);
    const moment = at === undefined ? { revision } : { atMs: Date.parse(at) };
    return this.bus.execute(new GetState(ledger, moment, after));
  }

  @Get(':ledger/verify')
  verify(@Param('ledger') ledger: string, @Query() query: unknown) {
    return this.bus.execute(new VerifyLedger(ledger, parsed(schemas.onlyAfter, query).after));
  }
}
