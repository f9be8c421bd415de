import {
  GetChargeHandler,
  GetRequestHandler,
  GetReservationHandler,
  ListReservationsHandler,
} from './attempts';
import { GetBudgetHandler, ListBalancesHandler, ListBudgetsHandler } from './budgets';
import { EventReader } from './events/event-reader';
import { ListEventsHandler } from './events/events';
import { BudgetIndexes, GetHeadroomHandler } from './headroom';
import { GetStateHandler, VerifyLedgerHandler } from './history/history';
import { LedgerReads } from './ledger-reads';
import { ListPricesHandler } from './prices';
import { GetReadinessHandler } from './readiness';
import { GetSettingsHandler, ListLedgersHandler } from './settings';
import { GetSpendHandler } from './spend';

/** Every query's handler, and what they share; the composition adds ReadServices. */
export const QUERY_HANDLERS = [
  LedgerReads,
  BudgetIndexes,
  EventReader,
  ListReservationsHandler,
  GetReservationHandler,
  GetChargeHandler,
  GetRequestHandler,
  ListBudgetsHandler,
  GetBudgetHandler,
  ListBalancesHandler,
  GetHeadroomHandler,
  GetSettingsHandler,
  ListLedgersHandler,
  ListPricesHandler,
  GetSpendHandler,
  ListEventsHandler,
  GetStateHandler,
  VerifyLedgerHandler,
  GetReadinessHandler,
];
