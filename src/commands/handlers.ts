import { Inject } from '@nestjs/common';
import type { Type } from '@nestjs/common';
import { CommandHandler } from '@nestjs/cqrs';
import type { ICommandHandler } from '@nestjs/cqrs';
import type { Command } from '../domain/commands';
import { CommandGateway } from '../writer/submission';
import type { CommandOutcome } from '../writer/submission';
import { LEDGER_MESSAGES } from './messages';
import type { LedgerMessage } from './messages';

/** One handler a message: each hands its command to the writer of its ledger. */
function handlerOf(message: (typeof LEDGER_MESSAGES)[number]): Type<ICommandHandler> {
  @CommandHandler(message)
  class LedgerMessageHandler implements ICommandHandler<LedgerMessage<Command>, CommandOutcome> {
    constructor(@Inject(CommandGateway) private readonly gateway: CommandGateway) {}

    execute({ ledger, command, origin }: LedgerMessage<Command>): Promise<CommandOutcome> {
      return this.gateway.submit(ledger, command, origin);
    }
  }
  return LedgerMessageHandler;
}

export const COMMAND_HANDLERS = LEDGER_MESSAGES.map(handlerOf);
