import { attemptData } from './attempt-data';
import type { Context } from './decision';
import type { ChargeCorrected } from './events';
import { costOf } from './figures';
import { ZERO, atLeastZero, formatMoney } from './money';
import type { Money } from './money';
import { placesOf, toBudgetPlace } from './places';
import { choosePrice } from './pricing-choice';
import type { Price } from './prices';
import type { ChargeState, LedgerState } from './state';
import { toTime } from './windows';

/** Corrections of charges that had no price, now that one is set (RULES 5, casebook 22). */
export function repricings(
  state: LedgerState,
  charges: readonly string[],
  price: Price | undefined,
  context: Pick<Context, 'catalogue' | 'nowMs'>,
): ChargeCorrected[] {
  const events: ChargeCorrected[] = [];
  for (const id of charges) {
    const charge = state.charges.get(id);
    if (!charge) continue;
    const model = charge.servedModel ?? charge.of.model;
    const chosen =
      price ?? choosePrice(state, { account: charge.of.account, model }, context.nowMs, context).price;
    const { cost, unpriced } = costOf(chosen, charge.servedTier ?? charge.of.serviceTier, charge.usage, ZERO);
    // Still a class without a price: never lower the bound that stands.
    const total = unpriced && cost < charge.cost ? charge.cost : cost;
    events.push(priceCorrection(state, charge, chosen, total, unpriced));
  }
  return events;
}

/** A correction that keeps everything of a charge but its figure. */
export function correctionOf(
  state: LedgerState,
  charge: ChargeState,
  cost: Money,
  cause: ChargeCorrected['data']['cause'],
): ChargeCorrected['data'] {
  const places = placesOf(state, charge.of, charge.countedAtMs, charge.countedRevision);
  return {
    ...attemptData(charge.of),
    chargeId: charge.id,
    reservationId: charge.reservationId,
    usageId: charge.usageId,
    cost: formatMoney(cost),
    previousCost: formatMoney(charge.cost),
    quality: charge.quality,
    usage: charge.usage,
    servedModel: charge.servedModel,
    servedTier: charge.servedTier,
    providerRequestId: charge.providerRequestId,
    released: formatMoney(atLeastZero(charge.reserved - cost)),
    overrun: formatMoney(atLeastZero(cost - charge.reserved)),
    cause,
    countedAt: toTime(charge.countedAtMs),
    budgets: places.map(toBudgetPlace),
  };
}

function priceCorrection(
  state: LedgerState,
  charge: ChargeState,
  price: Price | undefined,
  cost: Money,
  unpriced: boolean,
): ChargeCorrected {
  return {
    type: 'ChargeCorrected',
    data: {
      ...correctionOf(state, charge, cost, 'price'),
      priceId: price?.priceId,
      unpriced: unpriced ? true : undefined,
    },
  };
}
