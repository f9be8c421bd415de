import { Command as CqrsCommand } from '@nestjs/cqrs';
import type {
  ChangeSettings,
  CheckBudget,
  Command,
  CorrectCharge,
  DefineBudget,
  ExtendReservation,
  OpenLedger,
  RecordUsage,
  ReleaseReservation,
  RetireBudget,
  RetirePrice,
  SetPrice,
} from '../domain/commands';
import type { CommandOutcome, Origin } from '../writer/submission';

/** A command for a ledger, and who asks. */
export abstract class LedgerMessage<C extends Command> extends CqrsCommand<CommandOutcome> {
  constructor(
    readonly ledger: string,
    readonly command: C,
    readonly origin: Origin,
  ) {
    super();
  }
}

export class CheckBudgetMessage extends LedgerMessage<CheckBudget> {}
export class RecordUsageMessage extends LedgerMessage<RecordUsage> {}
export class ReleaseReservationMessage extends LedgerMessage<ReleaseReservation> {}
export class ExtendReservationMessage extends LedgerMessage<ExtendReservation> {}
export class CorrectChargeMessage extends LedgerMessage<CorrectCharge> {}
export class OpenLedgerMessage extends LedgerMessage<OpenLedger> {}
export class ChangeSettingsMessage extends LedgerMessage<ChangeSettings> {}
export class DefineBudgetMessage extends LedgerMessage<DefineBudget> {}
export class RetireBudgetMessage extends LedgerMessage<RetireBudget> {}
export class SetPriceMessage extends LedgerMessage<SetPrice> {}
export class RetirePriceMessage extends LedgerMessage<RetirePrice> {}

export const LEDGER_MESSAGES = [
  CheckBudgetMessage,
  RecordUsageMessage,
  ReleaseReservationMessage,
  ExtendReservationMessage,
  CorrectChargeMessage,
  OpenLedgerMessage,
  ChangeSettingsMessage,
  DefineBudgetMessage,
  RetireBudgetMessage,
  SetPriceMessage,
  RetirePriceMessage,
] as const;
