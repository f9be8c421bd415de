import type { Command } from '../domain/commands';
import type { Recorded } from '../domain/events';
import { SLUG } from '../domain/identifiers';
import type { ConfirmedListener } from './confirmations';
import { LedgerWriter } from './ledger-writer';
import type { WriterParts } from './writer-parts';
import type { WriterStorage } from './storage';
import { CommandGateway, LogUnavailableError } from './submission';
import type { CommandOutcome, Origin } from './submission';

export interface WritersParts extends WriterParts {
  readonly storage: WriterStorage;
  /** A ledger with nothing to do and nothing held leaves memory after this long; default never. */
  readonly unloadAfterIdleMs?: number;
}

const UNLOAD_EVERY_MS = 60_000;

/** The writers of this process, one a ledger, opened on first use. */
export class Writers extends CommandGateway {
  private readonly writers = new Map<string, LedgerWriter>();
  private readonly opening = new Map<string, Promise<LedgerWriter | undefined>>();
  private readonly listeners = new Set<ConfirmedListener>();
  /** Ledgers whose stream was seen to have events. */
  private readonly existing = new Set<string>();
  private readonly unloading: NodeJS.Timeout | undefined;
  private closing = false;

  constructor(private readonly parts: WritersParts) {
    super();
    const { unloadAfterIdleMs } = parts;
    if (unloadAfterIdleMs === undefined) return;
    const everyMs = Math.min(UNLOAD_EVERY_MS, unloadAfterIdleMs);
    this.unloading = setInterval(() => {
      this.unloadIdle(unloadAfterIdleMs);
    }, everyMs).unref();
  }

  override submit(ledger: string, command: Command, origin: Origin): Promise<CommandOutcome> {
    const writer = this.writers.get(ledger);
    if (writer && !this.closing) return writer.submit(command, origin);
    return this.submitFirst(ledger, command, origin);
  }

  private async submitFirst(ledger: string, command: Command, origin: Origin): Promise<CommandOutcome> {
    const writer = await this.find(ledger, command.type === 'OpenLedger');
    if (writer) return writer.submit(command, origin);
    return {
      kind: 'rejected',
      rejection: { code: 'ledger_not_found', detail: `no ledger ${ledger}` },
    };
  }

  /**
   * The writer of a ledger that exists, loaded or loading; undefined where there is no such ledger. Throws
   * LogUnavailableError.
   */
  open(ledger: string): Promise<LedgerWriter | undefined> {
    return this.find(ledger, false);
  }

  /** Opens every ledger there is, one after another, so that what is held in them ends in time. */
  async openAll(): Promise<void> {
    for (const ledger of await this.parts.storage.ledgers()) {
      if (this.closing) return;
      await (await this.find(ledger, false))?.ready();
    }
  }

  /** The ledgers that exist, in the order of their ids. */
  async ledgers(): Promise<string[]> {
    const found: string[] = [];
    for (const ledger of await this.parts.storage.ledgers())
      if (await this.exists(ledger)) found.push(ledger);
    return found;
  }

  /** Writers in memory, for feeds, health and metrics. */
  loaded(): ReadonlyMap<string, LedgerWriter> {
    return this.writers;
  }

  /** Confirmed events of every ledger in memory, also of those opened later. Returns how to stop listening. */
  onConfirmed(listener: ConfirmedListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Refuses new commands, answers the accepted ones, stores what is in flight, and stops. Bounded in time. */
  async close(): Promise<void> {
    this.closing = true;
    clearInterval(this.unloading);
    await Promise.allSettled(this.opening.values());
    await Promise.all([...this.writers.values()].map((writer) => writer.close()));
  }

  private async find(ledger: string, create: boolean): Promise<LedgerWriter | undefined> {
    if (this.closing) throw new LogUnavailableError('none', 1, 'the service is stopping');
    const known = this.writers.get(ledger);
    if (known) return known;
    if (!SLUG.test(ledger)) return undefined;
    const begun = this.opening.get(ledger);
    if (begun) {
      const writer = await begun;
      return writer ?? (create ? this.find(ledger, create) : undefined);
    }
    const opening = this.begin(ledger, create).finally(() => this.opening.delete(ledger));
    this.opening.set(ledger, opening);
    return opening;
  }

  private async begin(ledger: string, create: boolean): Promise<LedgerWriter | undefined> {
    try {
      if (!create && !(await this.exists(ledger))) return undefined;
      await this.parts.storage.registerLedger(ledger);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new LogUnavailableError('none', 1, `ledger ${ledger} cannot be opened: ${reason}`);
    }
    const writer = new LedgerWriter(ledger, this.parts);
    writer.onConfirmed((events) => {
      this.tell(events);
    });
    this.writers.set(ledger, writer);
    return writer;
  }

  private async exists(ledger: string): Promise<boolean> {
    if (this.existing.has(ledger)) return true;
    if ((await this.parts.store.head(ledger)) === undefined) return false;
    this.existing.add(ledger);
    return true;
  }

  private tell(events: readonly Recorded[]): void {
    for (const listener of this.listeners) {
      try {
        listener(events);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        this.parts.log.warn('a listener to confirmed events failed', {
          message,
        });
      }
    }
  }

  private unloadIdle(afterMs: number): void {
    for (const [ledger, writer] of this.writers) {
      if (writer.idleForMs() < afterMs || writer.holdsAnything) continue;
      this.writers.delete(ledger);
      writer.close().catch((error: unknown) => {
        this.parts.log.warn('a ledger could not be unloaded', {
          ledger,
          error: String(error),
        });
      });
    }
  }
}
