import { Query, QueryHandler } from '@nestjs/cqrs';
import type { IQueryHandler } from '@nestjs/cqrs';
import type { Page, PageRequest } from '../read-models/paging';
import type { AttemptState } from '../read-models/spend/attempt-row';
import type { AttemptView, ChargeView } from '../read-models/spend/attempt-view';
import { QueryError } from './query-errors';
import { LedgerReads } from './ledger-reads';

export type ReservationState = Exclude<AttemptState, 'refused' | 'asked' | 'charged'>;
export const RESERVATION_STATES: readonly ReservationState[] = [
  'held',
  'assumed',
  'unconfirmed',
  'confirmed',
  'released',
  'expired-released',
];

/** A reservation as callers see it: `id` is its own. */
export type ReservationView = Omit<AttemptView, 'reservationId'> & { readonly id: string };

/** A charge with what it was for. */
export type ChargeAnswer = Omit<ChargeView, 'cost'> &
  Omit<AttemptView, 'charge' | 'state' | 'reasons' | 'code'> & { readonly charged: string };

const SPEND = ['spend'] as const;

export class ListReservations extends Query<Page<ReservationView>> {
  constructor(
    readonly ledger: string,
    readonly state: ReservationState | undefined,
    readonly page: PageRequest,
    readonly after?: number,
  ) {
    super();
  }
}

@QueryHandler(ListReservations)
export class ListReservationsHandler implements IQueryHandler<ListReservations> {
  constructor(private readonly reads: LedgerReads) {}

  async execute({ ledger, state, page, after }: ListReservations): Promise<Page<ReservationView>> {
    await this.reads.seen(ledger, SPEND, after);
    const { data, ...rest } = await this.reads.attempts.reservations(ledger, state, page);
    return { ...rest, data: data.map(reservationView) };
  }
}

export class GetReservation extends Query<ReservationView> {
  constructor(
    readonly ledger: string,
    readonly id: string,
    readonly after?: number,
  ) {
    super();
  }
}

@QueryHandler(GetReservation)
export class GetReservationHandler implements IQueryHandler<GetReservation> {
  constructor(private readonly reads: LedgerReads) {}

  async execute({ ledger, id, after }: GetReservation): Promise<ReservationView> {
    await this.reads.seen(ledger, SPEND, after);
    const found = await this.reads.attempts.reservation(ledger, id);
    if (!found) throw new QueryError('reservation_not_found', 'no such reservation');
    return reservationView(found);
  }
}

export class GetCharge extends Query<ChargeAnswer> {
  constructor(
    readonly ledger: string,
    readonly id: string,
    readonly after?: number,
  ) {
    super();
  }
}

@QueryHandler(GetCharge)
export class GetChargeHandler implements IQueryHandler<GetCharge> {
  constructor(private readonly reads: LedgerReads) {}

  async execute({ ledger, id, after }: GetCharge): Promise<ChargeAnswer> {
    await this.reads.seen(ledger, SPEND, after);
    const found = await this.reads.attempts.charge(ledger, id);
    if (!found?.charge) throw new QueryError('charge_not_found', 'no such charge');
    const { charge, state: _state, reasons: _reasons, code: _code, ...attempt } = found;
    const { cost, ...figures } = charge;
    return { ...attempt, ...figures, charged: cost };
  }
}

/** Everything one request did, oldest first. */
export interface RequestView {
  readonly requestId: string;
  readonly attempts: readonly AttemptView[];
}

export class GetRequest extends Query<RequestView> {
  constructor(
    readonly ledger: string,
    readonly requestId: string,
    readonly after?: number,
  ) {
    super();
  }
}

@QueryHandler(GetRequest)
export class GetRequestHandler implements IQueryHandler<GetRequest> {
  constructor(private readonly reads: LedgerReads) {}

  async execute({ ledger, requestId, after }: GetRequest): Promise<RequestView> {
    await this.reads.seen(ledger, SPEND, after);
    const attempts = await this.reads.attempts.request(ledger, requestId);
    if (attempts.length === 0) throw new QueryError('request_not_found', 'no such request');
    return { requestId, attempts };
  }
}

function reservationView({ reservationId = '', ...rest }: AttemptView): ReservationView {
  return { id: reservationId, ...rest };
}
