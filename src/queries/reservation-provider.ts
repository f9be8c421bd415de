import { revisionIn } from '../domain/identifiers';
import type { Recorded } from '../domain/events';
import { decodeEvent } from '../domain/upcast';
import type { EventStore } from '../event-store/event-store';

/** Which provider a reservation was made for: some usage objects can be read only by who knows that. */
export abstract class ReservationProviders {
  abstract providerOf(ledger: string, reservationId: string): Promise<string | undefined>;
}

/** A reservation's id says where its event stands: in memory still, or one read of the log. */
export class LoggedReservationProviders extends ReservationProviders {
  constructor(
    private readonly recent: (ledger: string, revision: number) => Recorded | undefined,
    private readonly store: EventStore,
  ) {
    super();
  }

  override async providerOf(ledger: string, reservationId: string): Promise<string | undefined> {
    const revision = revisionIn(reservationId);
    if (revision === undefined) return undefined;
    const event = this.recent(ledger, revision) ?? (await this.logged(ledger, revision));
    return event?.type === 'SpendReserved' && event.data.reservationId === reservationId
      ? event.data.account.provider
      : undefined;
  }

  private async logged(ledger: string, revision: number): Promise<Recorded | undefined> {
    const [stored] = await this.store.read(ledger, { from: revision, limit: 1 });
    return stored?.revision === revision ? decodeEvent(stored.bytes) : undefined;
  }
}
