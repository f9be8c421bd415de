import type { Account, Tags } from '../../domain/attempt';
import type { BudgetPlace } from '../../domain/budget';
import type { ChargeCorrected, ChargeFigures, Quality, Reason, UsageCharged } from '../../domain/events';
import { parseMoney } from '../../domain/money';
import type { ReservationStateName } from '../../domain/rejections';
import type { Usage } from '../../domain/usage';
import { revisionOfId } from '../revision-of-id';

/** `asked`: an advisory check; `charged`: a charge without a hold of its own. */
export type AttemptState = ReservationStateName | 'refused' | 'asked' | 'charged';

/** The columns of a charge; amounts in nano-dollars, as text. */
export interface ChargeColumns {
  readonly charge_id: string;
  readonly charge_revision: number;
  readonly cost: string;
  readonly quality: Quality;
  readonly usage: Usage;
  readonly unpriced: boolean;
  readonly charge: ChargeDetails;
}

/** The rest of what the event says of a charge, amounts decimal USD. */
export type ChargeDetails = Omit<ChargeFigures, 'cost' | 'quality' | 'usage' | 'unpriced'> & {
  readonly assumed?: true;
  readonly duplicateSend?: true;
};

/** A row of `attempts` as it is inserted. */
export interface AttemptRow {
  readonly revision: number;
  state: AttemptState;
  readonly request_id?: string;
  readonly attempt?: number;
  readonly reservation_id?: string;
  readonly usage_id?: string;
  readonly provider: string;
  readonly account: string;
  readonly model: string;
  readonly model_id?: string;
  readonly workload?: string;
  readonly subject?: string;
  readonly conversation?: string;
  readonly tags?: Tags;
  readonly job?: string;
  readonly service_tier?: string;
  readonly amount?: string;
  readonly counted_at: string;
  readonly day: string;
  expires_at?: string;
  readonly code?: string;
  readonly reasons?: readonly Reason[];
  readonly details?: CheckDetails;
  readonly budgets?: readonly BudgetPlace[];
  readonly revisions: number[];
  charge?: ChargeColumns;
}

/** What else a check said. */
export interface CheckDetails {
  readonly candidate?: number;
  /** The estimate, by usage class. */
  readonly usage?: Usage;
  readonly priceId?: string;
  readonly priceExact?: boolean;
  readonly maxOutputTokens?: number;
  readonly onExpiry?: string;
  readonly fallbackFrom?: { readonly account: Account; readonly model: string };
  readonly skipped?: readonly Reason[];
  readonly warnings?: readonly Reason[];
  readonly wouldRefuse?: readonly Reason[];
  readonly unbudgeted?: true;
  readonly retryAt?: string;
  readonly nextAttempt?: number;
}

/** What a batch changes in a row that an earlier one inserted; what is absent stays. */
export interface AttemptPatch {
  readonly revision: number;
  state?: AttemptState;
  expires_at?: string;
  charge?: ChargeColumns;
  readonly revisions: number[];
}

export const nanos = (usd: string): string => parseMoney(usd).toString();

export function chargeColumns(event: UsageCharged | ChargeCorrected): ChargeColumns {
  const { data } = event;
  const charged = event.type === 'UsageCharged' ? event.data : undefined;
  return {
    charge_id: data.chargeId,
    charge_revision: revisionOfId(data.chargeId),
    cost: nanos(data.cost),
    quality: data.quality,
    usage: data.usage,
    unpriced: data.unpriced === true,
    charge: {
      outcome: data.outcome,
      servedModel: data.servedModel,
      servedTier: data.servedTier,
      priceId: data.priceId,
      ownCost: data.ownCost,
      reportedCost: data.reportedCost,
      upstreamCost: data.upstreamCost,
      providerRequestId: data.providerRequestId,
      error: data.error,
      released: data.released,
      overrun: data.overrun,
      late: data.late,
      assumed: charged?.assumed,
      duplicateSend: charged?.duplicateSend,
    },
  };
}

/** Without the balances, which are those of the event's moment. */
export const placesWithoutNumbers = (budgets: readonly BudgetPlace[]): BudgetPlace[] =>
  budgets.map(({ id, generation, window, bucket, setAside }) => ({
    id,
    generation,
    window,
    bucket,
    setAside,
  }));
