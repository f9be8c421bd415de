import { Body, Controller, Delete, Inject, Param, Post, Put, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import {
  ChangeSettingsMessage,
  CheckBudgetMessage,
  CorrectChargeMessage,
  DefineBudgetMessage,
  ExtendReservationMessage,
  OpenLedgerMessage,
  RecordUsageMessage,
  ReleaseReservationMessage,
  RetireBudgetMessage,
  RetirePriceMessage,
  SetPriceMessage,
} from '../commands/messages';
import type { LedgerMessage } from '../commands/messages';
import type { Command } from '../domain/commands';
import { ReservationProviders } from '../queries/reservation-provider';
import type { ActingRequest } from './auth/auth';
import { originOf } from './origin';
import { problemBody, problemFrom } from './problems/problem-filter';
import { Problem, invalidRequest, parsed, parsedRequest } from './problems/problem';
import { toHttp } from './respond';
import type { HttpAnswer } from './respond';
import { checkBudget } from '../schemas/check';
import { budget, definitionOf, openLedger, price, settings } from '../schemas/policy';
import { identifier, label, provider, slug } from '../schemas/primitives';
import { correction, extend, nothing, recordUsage } from '../schemas/usage';
import { bodyHashOf, toCheckBudget, toRecordUsage } from './translate';

/** How an unexpected error is told to whoever keeps the log. */
export const REPORT_ERROR = Symbol('report-error');

const bulk = z.strictObject({
  items: z.array(z.unknown()).min(1, 'is empty').max(1_000, 'has more than 1000 items'),
});
const ofLedger = z.object({ ledger: slug });
const ofAttempt = z.object({ id: identifier });
const ofBudget = z.object({ id: slug });
const ofPrice = z.object({ provider, model: label });

/** Commands over HTTP: a validated body becomes a command, its outcome a status and a body. */
@Controller('v1/ledgers/:ledger')
export class WritesController {
  constructor(
    @Inject(CommandBus) private readonly bus: CommandBus,
    @Inject(ReservationProviders) private readonly providers: ReservationProviders,
    @Inject(REPORT_ERROR) private readonly report: (error: unknown) => void,
  ) {}

  @Post('check-budget')
  async checkBudget(
    @Param('ledger') ledger: string,
    @Body() body: unknown,
    @Req() request: ActingRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    send(reply, await this.check(ledger, body, request));
  }

  @Post('record-usage')
  async recordUsage(
    @Param('ledger') ledger: string,
    @Body() body: unknown,
    @Req() request: ActingRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    send(reply, await this.record(ledger, body, request));
  }

  @Post('check-budget/bulk')
  async checkMany(
    @Param('ledger') ledger: string,
    @Body() body: unknown,
    @Req() request: ActingRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    send(reply, await this.each(body, (item) => this.check(ledger, item, request)));
  }

  @Post('record-usage/bulk')
  async recordMany(
    @Param('ledger') ledger: string,
    @Body() body: unknown,
    @Req() request: ActingRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    send(reply, await this.each(body, (item) => this.record(ledger, item, request)));
  }

  @Post('reservations/:id/release')
  async release(
    @Param('ledger') ledger: string,
    @Param('id') id: string,
    @Body() body: unknown,
    @Req() request: ActingRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const [of] = parsedRequest([ofAttempt, { id }], [nothing, body]);
    const command = { type: 'ReleaseReservation', reservationId: of.id } as const;
    send(reply, await this.execute(new ReleaseReservationMessage(ledger, command, originOf(request))));
  }

  @Post('reservations/:id/extend')
  async extend(
    @Param('ledger') ledger: string,
    @Param('id') id: string,
    @Body() body: unknown,
    @Req() request: ActingRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const [of, { ttlSeconds }] = parsedRequest([ofAttempt, { id }], [extend, body]);
    const command = { type: 'ExtendReservation', reservationId: of.id, ttlSeconds } as const;
    send(reply, await this.execute(new ExtendReservationMessage(ledger, command, originOf(request))));
  }

  @Post('charges/:id/corrections')
  async correct(
    @Param('ledger') ledger: string,
    @Param('id') id: string,
    @Body() body: unknown,
    @Req() request: ActingRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const [of, read] = parsedRequest([ofAttempt, { id }], [correction, body]);
    const command = {
      type: 'CorrectCharge',
      chargeId: of.id,
      ...read,
      bodyHash: bodyHashOf(read),
    } as const;
    send(reply, await this.execute(new CorrectChargeMessage(ledger, command, originOf(request))));
  }

  @Put()
  async open(
    @Param('ledger') ledger: string,
    @Body() body: unknown,
    @Req() request: ActingRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const [of, read] = parsedRequest([ofLedger, { ledger }], [openLedger, body]);
    const command = { type: 'OpenLedger', settings: read?.settings ?? {} } as const;
    const answer = await this.execute(new OpenLedgerMessage(of.ledger, command, originOf(request)));
    send(reply, { ...answer, body: { ledger, ...(answer.body as object) } });
  }

  @Put('settings')
  async settings(
    @Param('ledger') ledger: string,
    @Body() body: unknown,
    @Req() request: ActingRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const command = { type: 'ChangeSettings', settings: parsed(settings, body) } as const;
    send(reply, await this.execute(new ChangeSettingsMessage(ledger, command, originOf(request))));
  }

  @Put('budgets/:id')
  async define(
    @Param('ledger') ledger: string,
    @Param('id') id: string,
    @Body() body: unknown,
    @Req() request: ActingRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const [, read] = parsedRequest([ofBudget, { id }], [budget, body]);
    if (read.id !== undefined && read.id !== id)
      throw invalidRequest([{ path: 'id', message: 'is not the id in the path' }]);
    const command = {
      type: 'DefineBudget',
      budget: definitionOf(id, read),
      countFrom: read.countFrom,
    } as const;
    send(reply, await this.execute(new DefineBudgetMessage(ledger, command, originOf(request))));
  }

  @Delete('budgets/:id')
  async retire(
    @Param('ledger') ledger: string,
    @Param('id') id: string,
    @Req() request: ActingRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const command = { type: 'RetireBudget', ...parsed(ofBudget, { id }) } as const;
    send(reply, await this.execute(new RetireBudgetMessage(ledger, command, originOf(request))));
  }

  @Put('prices/:provider/:model')
  async setPrice(
    @Param('ledger') ledger: string,
    @Param('provider') by: string,
    @Param('model') model: string,
    @Body() body: unknown,
    @Req() request: ActingRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const [of, read] = parsedRequest([ofPrice, { provider: by, model }], [price, body]);
    const command = { type: 'SetPrice', ...of, ...read, origin: 'operator' } as const;
    send(reply, await this.execute(new SetPriceMessage(ledger, command, originOf(request))));
  }

  @Delete('prices/:provider/:model')
  async retirePrice(
    @Param('ledger') ledger: string,
    @Param('provider') by: string,
    @Param('model') model: string,
    @Req() request: ActingRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const command = { type: 'RetirePrice', ...parsed(ofPrice, { provider: by, model }) } as const;
    send(reply, await this.execute(new RetirePriceMessage(ledger, command, originOf(request))));
  }

  private check(ledger: string, body: unknown, request: ActingRequest): Promise<HttpAnswer> {
    return this.execute(
      new CheckBudgetMessage(ledger, toCheckBudget(parsed(checkBudget, body)), originOf(request)),
    );
  }

  private async record(ledger: string, body: unknown, request: ActingRequest): Promise<HttpAnswer> {
    const read = parsed(recordUsage, body);
    const reserved = read.providerUsage && read.reservationId;
    const provider = reserved === undefined ? undefined : await this.providers.providerOf(ledger, reserved);
    return this.execute(new RecordUsageMessage(ledger, toRecordUsage(read, provider), originOf(request)));
  }

  private async execute(message: LedgerMessage<Command>): Promise<HttpAnswer> {
    return toHttp(await this.bus.execute(message));
  }

  /** Every item is answered on its own, with its own status. */
  private async each(body: unknown, one: (item: unknown) => Promise<HttpAnswer>): Promise<HttpAnswer> {
    const { items } = parsed(bulk, body);
    const results = await Promise.all(
      items.map(async (item) => {
        try {
          const { status, body: answered, headers } = await one(item);
          return { status, replayed: headers ? true : undefined, body: answered };
        } catch (error) {
          const problem = error instanceof Problem ? error : problemFrom(error, this.report);
          return {
            status: problem.status,
            replayed: 'idempotent-replayed' in problem.headers || undefined,
            body: problemBody(problem),
          };
        }
      }),
    );
    return { status: 200, body: { results } };
  }
}

function send(reply: FastifyReply, { status, body, headers }: HttpAnswer): void {
  if (headers) void reply.headers(headers);
  void reply.code(status).send(body);
}
