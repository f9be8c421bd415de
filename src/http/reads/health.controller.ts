import { Controller, Get, Inject, Res } from '@nestjs/common';
import { QueryBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import { GetReadiness } from '../../queries/readiness';

@Controller()
export class HealthController {
  constructor(@Inject(QueryBus) private readonly bus: QueryBus) {}

  @Get('livez')
  live(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /** Database, log and projections; 503 where no check can be decided. */
  @Get('readyz')
  async ready(@Res() reply: FastifyReply): Promise<void> {
    const readiness = await this.bus.execute(new GetReadiness());
    void reply.code(readiness.status === 'not ready' ? 503 : 200).send(readiness);
  }
}
