import { Controller, Get, Inject, Param, Query } from '@nestjs/common';
import { QueryBus } from '@nestjs/cqrs';
import {
  GetBudget,
  GetCharge,
  GetHeadroom,
  GetRequest,
  GetReservation,
  GetSettings,
  GetSpend,
  GetState,
  ListBalances,
  ListBudgets,
  ListLedgers,
  ListPrices,
  ListReservations,
  Verify,
} from '../../queries/messages';
import type { BudgetView } from '../../queries/answers';
import { parsed } from '../problems/problem';
import * as schemas from './query-schemas';

const flat = ({ budget, generation, current }: BudgetView) => ({ ...budget, generation, current });

/** Queries over HTTP: thin over the query bus. */
@Controller('v1/ledgers')
export class ReadsController {
  constructor(@Inject(QueryBus) private readonly bus: QueryBus) {}

  @Get()
  async ledgers() {
    return { data: await this.bus.execute(new ListLedgers()) };
  }

  @Get(':ledger/requests/:id')
  async request(@Param('ledger') ledger: string, @Param('id') id: string, @Query() query: unknown) {
    const { after } = parsed(schemas.onlyAfter, query);
    return { requestId: id, attempts: await this.bus.execute(new GetRequest(ledger, after, id)) };
  }

  @Get(':ledger/reservations')
  reservations(@Param('ledger') ledger: string, @Query() query: unknown) {
    const { after, state, ...page } = parsed(schemas.reservations, query);
    return this.bus.execute(new ListReservations(ledger, after, state, page));
  }

  @Get(':ledger/reservations/:id')
  reservation(@Param('ledger') ledger: string, @Param('id') id: string, @Query() query: unknown) {
    return this.bus.execute(new GetReservation(ledger, parsed(schemas.onlyAfter, query).after, id));
  }

  @Get(':ledger/charges/:id')
  charge(@Param('ledger') ledger: string, @Param('id') id: string, @Query() query: unknown) {
    return this.bus.execute(new GetCharge(ledger, parsed(schemas.onlyAfter, query).after, id));
  }

  @Get(':ledger/budgets')
  async budgets(@Param('ledger') ledger: string, @Query() query: unknown) {
    const { after, ...page } = parsed(schemas.paged, query);
    const { data, nextCursor } = await this.bus.execute(new ListBudgets(ledger, after, page));
    return { data: data.map(flat), nextCursor };
  }

  @Get(':ledger/budgets/:id')
  async budget(@Param('ledger') ledger: string, @Param('id') id: string, @Query() query: unknown) {
    return flat(await this.bus.execute(new GetBudget(ledger, parsed(schemas.onlyAfter, query).after, id)));
  }

  @Get(':ledger/budgets/:id/balances')
  balances(@Param('ledger') ledger: string, @Param('id') id: string, @Query() query: unknown) {
    const { after, ...page } = parsed(schemas.paged, query);
    return this.bus.execute(new ListBalances(ledger, after, id, page));
  }

  @Get(':ledger/spend')
  spend(@Param('ledger') ledger: string, @Query() query: unknown) {
    const { after, from, to, ...request } = parsed(schemas.spend, query);
    return this.bus.execute(new GetSpend(ledger, after, request, from, to));
  }

  @Get(':ledger/settings')
  settings(@Param('ledger') ledger: string, @Query() query: unknown) {
    return this.bus.execute(new GetSettings(ledger, parsed(schemas.onlyAfter, query).after));
  }

  @Get(':ledger/prices')
  async prices(@Param('ledger') ledger: string, @Query() query: unknown) {
    const { after, provider, model } = parsed(schemas.prices, query);
    return { data: await this.bus.execute(new ListPrices(ledger, after, provider, model)) };
  }

  @Get(':ledger/headroom')
  headroom(@Param('ledger') ledger: string, @Query() query: unknown) {
    const { after, of } = parsed(schemas.headroom, query);
    return this.bus.execute(new GetHeadroom(ledger, after, of));
  }

  @Get(':ledger/state')
  state(@Param('ledger') ledger: string, @Query() query: unknown) {
    const { at, revision } = parsed(schemas.state, query);
    return this.bus.execute(new GetState(ledger, at === undefined ? undefined : Date.parse(at), revision));
  }

  @Get(':ledger/verify')
  verify(@Param('ledger') ledger: string, @Query() query: unknown) {
    return this.bus.execute(new Verify(ledger, parsed(schemas.onlyAfter, query).after));
  }
}
