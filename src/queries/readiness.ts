import { Query, QueryHandler } from '@nestjs/cqrs';
import type { IQueryHandler } from '@nestjs/cqrs';
import { readStoreTime } from '../postgres/store-time';
import type { LedgerStatus } from '../read-models/runner/projection';
import { LedgerReads } from './ledger-reads';

type Answering = 'ok' | 'unavailable';

/**
 * `degraded`: checks are decided, but a read model stands still or lags far behind, so that some questions are answered late or
 * not at all. That is no reason to send checks elsewhere.
 */
export interface Readiness {
  readonly status: 'ok' | 'degraded' | 'not ready';
  readonly database: Answering;
  readonly log: Answering;
  readonly projections: readonly LedgerStatus[];
}

export class GetReadiness extends Query<Readiness> {}

const PATIENCE_MS = 2_000;
/** Events behind the log that are more than a busy moment. */
const FAR_BEHIND = 10_000;
const DEFAULT_LEDGER = 'main';

@QueryHandler(GetReadiness)
export class GetReadinessHandler implements IQueryHandler<GetReadiness> {
  constructor(private readonly reads: LedgerReads) {}

  async execute(): Promise<Readiness> {
    const { services } = this.reads;
    const [database, log] = await Promise.all([
      answering(() => readStoreTime(services.pool)),
      answering(() => services.store.head(DEFAULT_LEDGER)),
    ]);
    const projections = services.projection.status();
    const isBehind = projections.some(
      ({ error, models }) =>
        error !== undefined ||
        models.some(({ state, lag }) => state === 'failed' || state === 'superseded' || lag > FAR_BEHIND),
    );
    const standing = isBehind ? 'degraded' : 'ok';
    return { status: database === 'ok' && log === 'ok' ? standing : 'not ready', database, log, projections };
  }
}

async function answering(ask: () => Promise<unknown>): Promise<Answering> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<Answering>((resolve) => {
    timer = setTimeout(() => {
      resolve('unavailable');
    }, PATIENCE_MS);
  });
  const answered = ask().then(
    (): Answering => 'ok',
    (): Answering => 'unavailable',
  );
  const told = await Promise.race([answered, silence]);
  clearTimeout(timer);
  return told;
}
