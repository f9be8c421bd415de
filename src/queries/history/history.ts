import { Query, QueryHandler } from '@nestjs/cqrs';
import type { IQueryHandler } from '@nestjs/cqrs';
import { LedgerReads, positionAhead } from '../ledger-reads';
import type { StateView } from './state-view';
import type { Verification } from './verify';

/** Neither: the ledger as it stands now. Before it was opened: revision −1, and nothing in it. */
export type StateMoment = { readonly revision?: number } | { readonly atMs: number };

export class GetState extends Query<StateView> {
  constructor(
    readonly ledger: string,
    readonly moment: StateMoment,
    readonly after?: number,
  ) {
    super();
  }
}

@QueryHandler(GetState)
export class GetStateHandler implements IQueryHandler<GetState> {
  constructor(private readonly reads: LedgerReads) {}

  async execute({ ledger, moment, after = 0 }: GetState): Promise<StateView> {
    await this.reads.mustExist(ledger);
    const { store, now, history } = this.reads.services;
    const head = await this.reads.head(ledger);
    if (after > head) throw positionAhead(after, head);
    if (!('atMs' in moment)) {
      const { revision = head } = moment;
      if (revision > head) throw positionAhead(revision, head);
      const atMs = moment.revision === undefined ? now() : undefined;
      return history.run({ kind: 'state', ledger, revision, atMs });
    }
    // Of what is still to come nothing is known: the ledger as it stands now is the last that can be told.
    const atMs = Math.min(moment.atMs, now());
    const revision = (await store.revisionAt(ledger, atMs + 1)) - 1;
    return history.run({ kind: 'state', ledger, revision, atMs });
  }
}

export class VerifyLedger extends Query<Verification> {
  constructor(
    readonly ledger: string,
    readonly after?: number,
  ) {
    super();
  }
}

@QueryHandler(VerifyLedger)
export class VerifyLedgerHandler implements IQueryHandler<VerifyLedger> {
  constructor(private readonly reads: LedgerReads) {}

  async execute({ ledger, after }: VerifyLedger): Promise<Verification> {
    // Also a ledger whose read models stand still is verified: it is what the auditor wants to know.
    if (after === undefined) await this.reads.mustExist(ledger);
    else await this.reads.seen(ledger, ['spend', 'budgets'], after);
    return this.reads.services.history.run({ kind: 'verify', ledger });
  }
}
