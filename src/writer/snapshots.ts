import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { LedgerState } from '../domain/state';
import type { EventStore } from '../event-store/event-store';
import type { Decider } from './decider';
import type { WriterLog, WriterOptions } from './options';
import type { Confirmed } from './speculation';
import type { SnapshotBound, WriterStorage } from './storage';

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** Damaged or foreign snapshots tried before the whole log is folded. */
const MAX_TRIES = 3;
/** Writing the state as text stops everything else: it may take at most one part in this many of the time. */
const SHARE_OF_TIME = 50;

export interface Restored {
  readonly state: LedgerState;
  readonly confirmed: Confirmed;
}

/** Takes and reads snapshots of one ledger. They only save time: whatever fails here is logged and harmless. */
export class Snapshots {
  private readonly from: { revision: number; atMs: number };
  private tookMs = 0;
  private saving: Promise<void> | undefined;

  constructor(
    private readonly ledger: string,
    private readonly storage: WriterStorage | undefined,
    private readonly decider: Decider,
    private readonly log: WriterLog,
    private readonly options: WriterOptions,
  ) {
    this.from = { revision: -1, atMs: performance.now() };
  }

  /**
   * The newest usable one (at or below a bound): of this shape of the state, and its last event is the log's. Others
   * are dropped.
   */
  async load(store: EventStore, until?: SnapshotBound): Promise<Restored | undefined> {
    const { storage, ledger, decider } = this;
    if (!storage) return undefined;
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const snapshot = await storage.newestSnapshot(ledger, decider.stateVersion, until);
      if (!snapshot) return undefined;
      const { revision, hash, atMs } = snapshot;
      const [last] = await store.read(ledger, { from: revision, limit: 1 });
      if (last?.revision === revision && decider.decode(last.bytes).metadata.hash === hash) {
        const state = await this.restore(snapshot.body);
        if (state?.revision === revision) {
          this.from.revision = revision;
          return { state, confirmed: { revision, hash, atMs } };
        }
      }
      this.log.warn('a snapshot does not fit the log and is dropped', {
        ledger,
        revision,
      });
      await storage.dropSnapshot(ledger, revision);
    }
    return undefined;
  }

  private async restore(body: Buffer): Promise<LedgerState | undefined> {
    try {
      return this.decider.restore((await decompress(body)).toString('utf8'));
    } catch (error) {
      this.warn('a snapshot cannot be read', error);
      return undefined;
    }
  }

  /** Whether it is time for another. */
  isDue(revision: number): boolean {
    if (!this.storage || this.saving) return false;
    const { snapshotEvents, snapshotAfterMs, snapshotMinEvents } = this.options;
    const events = revision - this.from.revision;
    if (events < Math.min(snapshotMinEvents, snapshotEvents)) return false;
    const elapsed = performance.now() - this.from.atMs;
    if (elapsed < this.tookMs * SHARE_OF_TIME) return false;
    return events >= snapshotEvents || elapsed >= snapshotAfterMs;
  }

  /** Whether one at the end saves the next start some work. */
  isWorthwhile(revision: number): boolean {
    return this.storage !== undefined && revision - this.from.revision >= this.options.snapshotMinEvents;
  }

  /** Takes one of a state in which nothing is speculative: the text at once, all else in the background. */
  take(state: LedgerState, confirmed: Confirmed): void {
    const started = performance.now();
    let text: string;
    try {
      text = this.decider.serialise(state);
    } catch (error) {
      this.from.revision = confirmed.revision;
      this.warn('a snapshot could not be taken', error);
      return;
    }
    this.tookMs = performance.now() - started;
    this.from.revision = confirmed.revision;
    this.from.atMs = performance.now();
    this.saving = this.save(text, confirmed)
      .catch((error: unknown) => {
        this.warn('a snapshot could not be saved', error);
      })
      .finally(() => {
        this.saving = undefined;
      });
  }

  /** Resolves when none is being saved. */
  async settled(): Promise<void> {
    await this.saving;
  }

  private async save(text: string, { revision, hash, atMs }: Confirmed): Promise<void> {
    const { storage, ledger, decider } = this;
    const body = await compress(text, { level: 1 });
    await storage?.saveSnapshot({
      ledger,
      revision,
      schemaVersion: decider.stateVersion,
      hash,
      atMs,
      body,
    });
  }

  private warn(message: string, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.log.warn(message, { ledger: this.ledger, reason });
  }
}
