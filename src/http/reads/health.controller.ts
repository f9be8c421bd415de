import { Controller, Get, Inject, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { ReadServices } from '../../queries/read-services';

/** Most events a read model may be behind before the service calls itself not ready. */
const TOLERATED_LAG = 100_000;

@Controller()
export class HealthController {
  constructor(@Inject(ReadServices) private readonly services: ReadServices) {}

  @Get('livez')
  live() {
    return { status: 'ok' };
  }

  /** Database, log and projections: 503 where one of them does not work. */
  @Get('readyz')
  async ready(@Res() reply: FastifyReply): Promise<void> {
    const [database, log] = await Promise.all([
      works(this.services.pool.query('SELECT 1')),
      works(this.services.store.head('main')),
    ]);
    const projections = this.services.projection.status();
    const projected = projections.every(
      ({ error, models }) =>
        error === undefined && models.every(({ state, lag }) => state !== 'failed' && lag <= TOLERATED_LAG),
    );
    const ready = database === 'ok' && log === 'ok' && projected;
    void reply
      .code(ready ? 200 : 503)
      .send({ status: ready ? 'ok' : 'not ready', database, log, projections });
  }
}

const works = (asked: Promise<unknown>): Promise<'ok' | 'unavailable'> =>
  asked.then(
    () => 'ok' as const,
    () => 'unavailable' as const,
  );
