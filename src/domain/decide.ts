import type { Command } from './commands';
import { decideBudget, decideBudgetRetirement } from './decide-budget';
import { decideCheck } from './decide-check';
import { decideOpening, decidePrice, decidePriceRetirement, decideSettings } from './decide-policy';
import { decideCorrection, decideExtension, decideRelease } from './decide-reservation';
import { decideUsage } from './decide-usage';
import type { Context, Decision } from './decision';
import { decideExpiry } from './expiry';
import type { LedgerState } from './state';

/**
 * Decides a command on the state, which stands at `context.nowMs` (`advance`). Changes nothing, reads no clock:
 * the same command, state and context always give the same decision.
 */
export function decide(command: Command, state: LedgerState, context: Context): Decision {
  if (!state.opened && command.type !== 'OpenLedger') {
    return {
      kind: 'rejected',
      rejection: { code: 'ledger_not_open', detail: `ledger ${state.ledger} is not open` },
    };
  }
  switch (command.type) {
    case 'CheckBudget':
      return decideCheck(command, state, context);
    case 'RecordUsage':
      return decideUsage(command, state, context);
    case 'ReleaseReservation':
      return decideRelease(command, state, context);
    case 'ExtendReservation':
      return decideExtension(command, state, context);
    case 'CorrectCharge':
      return decideCorrection(command, state, context);
    case 'OpenLedger':
      return decideOpening(command, state);
    case 'ChangeSettings':
      return decideSettings(command, state);
    case 'DefineBudget':
      return decideBudget(command, state, context);
    case 'RetireBudget':
      return decideBudgetRetirement(command, state);
    case 'SetPrice':
      return decidePrice(command, state, context);
    case 'RetirePrice':
      return decidePriceRetirement(command, state, context);
    case 'ExpireDue':
      return decideExpiry(command, state, context);
    default: {
      const unknown: never = command;
      throw new Error(`no decision for ${JSON.stringify(unknown)}`);
    }
  }
}
