import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { COMMAND_HANDLERS } from './commands/handlers';
import { EventsController, OpenStreams } from './http/reads/events.controller';
import { HealthController } from './http/reads/health.controller';
import { ReadsController } from './http/reads/reads.controller';
import { REPORT_ERROR, WritesController } from './http/writes.controller';
import { QUERY_HANDLERS } from './queries/handlers';
import { ReservationProviders } from './queries/reservation-provider';
import { ReadServices } from './queries/read-services';
import { CommandGateway } from './writer/submission';

export interface AppParts {
  readonly gateway: CommandGateway;
  readonly reads: ReadServices;
  readonly providers: ReservationProviders;
  readonly streams: OpenStreams;
  readonly report: (error: unknown) => void;
}

/** What is plugged into what. */
@Module({})
export class AppModule {
  static of({ gateway, reads, providers, streams, report }: AppParts): DynamicModule {
    return {
      module: AppModule,
      imports: [CqrsModule.forRoot()],
      controllers: [WritesController, EventsController, HealthController, ReadsController],
      providers: [
        { provide: CommandGateway, useValue: gateway },
        { provide: ReadServices, useValue: reads },
        { provide: ReservationProviders, useValue: providers },
        { provide: OpenStreams, useValue: streams },
        { provide: REPORT_ERROR, useValue: report },
        ...COMMAND_HANDLERS,
        ...QUERY_HANDLERS,
      ],
    };
  }
}
