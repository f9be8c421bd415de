import type { Client } from 'pg';
import type { WakeUps } from '../wake-ups';

/** At most 20 a second a process: a NOTIFY locks the whole database while it commits. */
const NOTIFY_EVERY_MS = 50;
const RECONNECT_MS = 1_000;

/**
 * Tells other processes that streams grew, and hears it from them. What is missed is found by polling; so nothing
 * here may ever fail an append.
 */
export class News {
  private client: Client | undefined;
  private reconnecting: NodeJS.Timeout | undefined;
  private telling: NodeJS.Timeout | undefined;
  private toldAt = Number.NEGATIVE_INFINITY;
  private busy = false;
  private readonly grown = new Set<string>();
  private closed = false;

  constructor(
    private readonly connect: () => Promise<Client>,
    private readonly channel: string,
    private readonly wakeUps: WakeUps,
    /** Tells of several ledgers in one transaction. */
    private readonly notify: (channel: string, ledgers: readonly string[]) => Promise<unknown>,
  ) {}

  start(): void {
    void this.listen();
  }

  /** Coalesced: a ledger that grew many times is told of once. The first news after a quiet time goes out at once. */
  tell(ledger: string): void {
    this.grown.add(ledger);
    this.schedule();
  }

  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.reconnecting);
    clearTimeout(this.telling);
    await this.client?.end().catch(() => undefined);
  }

  private schedule(): void {
    if (this.closed || this.busy || this.grown.size === 0) return;
    const waitMs = Math.max(0, this.toldAt + NOTIFY_EVERY_MS - performance.now());
    this.telling ??= setTimeout(() => void this.tellAll(), waitMs).unref();
  }

  /** One at a time: where the database is slow the news gathers here instead of in the pool's queue. */
  private async tellAll(): Promise<void> {
    this.telling = undefined;
    this.busy = true;
    this.toldAt = performance.now();
    const ledgers = [...this.grown];
    this.grown.clear();
    await this.notify(this.channel, ledgers).catch(() => undefined);
    this.busy = false;
    this.schedule();
  }

  private async listen(): Promise<void> {
    let client: Client | undefined;
    try {
      client = await this.connect();
      this.client = client;
      client.on('notification', ({ payload }) => {
        if (payload !== undefined) this.wakeUps.wake(payload);
      });
      client.once('end', () => {
        this.again();
      });
      await client.query(`LISTEN "${this.channel}"`);
      // What was told while nobody listened.
      this.wakeUps.wakeAll();
      if (this.closed) await client.end();
    } catch {
      // One that connected and cannot listen would keep its place; its 'end' begins the next try.
      if (client) await client.end().catch(() => undefined);
      else this.again();
    }
  }

  private again(): void {
    this.client = undefined;
    if (this.closed) return;
    clearTimeout(this.reconnecting);
    this.reconnecting = setTimeout(() => void this.listen(), RECONNECT_MS * (0.5 + Math.random())).unref();
  }
}
