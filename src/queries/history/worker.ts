import { parentPort, workerData } from 'node:worker_threads';
import { PostgresEventStore } from '../../event-store/postgres/postgres-event-store';
import { MIN_POOL_SIZE, openDatabase } from '../../postgres/pool';
import { readTotals } from '../../read-models/totals';
import { PostgresWriterStorage } from '../../writer/storage';
import type { HistoryDatabase, HistoryJob, HistoryReply } from './messages';
import { stateAt } from './state-at';
import { stateView } from './state-view';
import { verifyLog } from './verify';

/** The thread that folds history, so that no check waits for it. Started by `HistoryReader`. */
const silent = { info: () => undefined, warn: () => undefined };
const { url, schema } = workerData as HistoryDatabase;
// A pool of one: nothing here runs side by side.
const { pool } = openDatabase({
  url,
  schema,
  poolSize: MIN_POOL_SIZE,
  applicationName: 'spend-ledger-history',
  log: silent,
});
// It neither appends nor listens for news, so it needs no connections for that: they are never given.
const log = new PostgresEventStore({ pool, connect: () => new Promise(() => undefined), schema });
const snapshots = new PostgresWriterStorage(pool);

async function run(job: HistoryJob): Promise<HistoryReply> {
  if (job.kind === 'state') return { kind: 'done', result: stateView(await stateAt(log, snapshots, job)) };
  const totals = await readTotals(pool, job.ledger);
  const head = (await log.head(job.ledger))?.revision ?? -1;
  return { kind: 'done', result: await verifyLog(log, job.ledger, head, totals) };
}

parentPort?.on('message', (job: HistoryJob) => {
  run(job)
    .catch((error: unknown): HistoryReply => {
      return { kind: 'failed', message: error instanceof Error ? error.message : String(error) };
    })
    .then((reply) => parentPort?.postMessage(reply))
    .catch(() => process.exit(1));
});
