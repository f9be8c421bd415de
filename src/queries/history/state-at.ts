import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { advance, evolve } from '../../domain/evolve';
import { NO_JOURNAL } from '../../domain/journal';
import { STATE_SCHEMA_VERSION, restoreState } from '../../domain/snapshot';
import { initialState } from '../../domain/state';
import type { LedgerState } from '../../domain/state';
import { decodeEvent } from '../../domain/upcast';
import type { WriterStorage } from '../../writer/storage';
import { pagesOf } from './log-pages';
import type { LogPages } from './log-pages';

const decompress = promisify(gunzip);
/** Snapshots that do not fit the log are passed over, this many. */
const MAX_TRIES = 3;

export interface StateRequest {
  readonly ledger: string;
  /** The last event in it. */
  readonly revision: number;
  /** ms since epoch; what is due by then has happened. Not before that event. */
  readonly atMs?: number;
}

/** The ledger's state as it stood: the nearest snapshot at or below, and the events from there on. */
export async function stateAt(
  log: LogPages,
  snapshots: Pick<WriterStorage, 'newestSnapshot'>,
  { ledger, revision, atMs }: StateRequest,
): Promise<LedgerState> {
  const state = (await nearest(log, snapshots, ledger, revision)) ?? initialState(ledger);
  for await (const page of pagesOf(log, ledger, state.revision + 1, revision)) {
    for (const { bytes, at, revision: of } of page) {
      evolve(state, decodeEvent(bytes), { revision: of, atMs: at }, NO_JOURNAL);
    }
  }
  if (state.revision !== revision) throw new Error(`the log ends before revision ${revision}`);
  if (atMs !== undefined && atMs > state.at) {
    advance(state, atMs, NO_JOURNAL);
    state.at = atMs;
  }
  return state;
}

async function nearest(
  log: LogPages,
  snapshots: Pick<WriterStorage, 'newestSnapshot'>,
  ledger: string,
  revision: number,
): Promise<LedgerState | undefined> {
  let bound = revision;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const found = await snapshots.newestSnapshot(ledger, STATE_SCHEMA_VERSION, { revision: bound });
    if (!found) return undefined;
    const [last] = await log.read(ledger, { from: found.revision, limit: 1 });
    if (last?.revision === found.revision && decodeEvent(last.bytes).metadata.hash === found.hash) {
      try {
        const state = restoreState((await decompress(found.body)).toString('utf8'));
        if (state.revision === found.revision) return state;
      } catch {
        // Damaged: an older one, or the whole log, says the same.
      }
    }
    bound = found.revision - 1;
  }
  return undefined;
}
