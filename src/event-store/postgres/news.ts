import type { Client } from 'pg';
import type { WakeUps } from '../wake-ups';

/** At most 20 a second a process: a NOTIFY locks the whole database while it commits. */
const NOTIFY_EVERY_MS = 50;
const RECONNECT_MS = 1_000;

/**
 * Tells other processes that a stream grew, and hears it from them. What is missed is found by polling; so nothing
 * here may ever fail an append.
 */
export class News {
  private client: Client | undefined;
  private timer: NodeJS.Timeout | undefined;
  private notifying: NodeJS.Timeout | undefined;
  private readonly grown = new Set<string>();
  private closed = false;

  constructor(
    private readonly connect: () => Promise<Client>,
    private readonly channel: string,
    private readonly wakeUps: WakeUps,
    private readonly notify: (channel: string, ledger: string) => Promise<unknown>,
  ) {}

  start(): void {
    void this.listen();
  }

  /** Coalesced: a ledger that grew many times is told of once. */
  tell(ledger: string): void {
    if (this.closed) return;
    this.grown.add(ledger);
    this.notifying ??= setTimeout(() => {
      this.notifying = undefined;
      const ledgers = [...this.grown];
      this.grown.clear();
      for (const grown of ledgers) this.notify(this.channel, grown).catch(() => undefined);
    }, NOTIFY_EVERY_MS).unref();
  }

  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.timer);
    clearTimeout(this.notifying);
    await this.client?.end().catch(() => undefined);
  }

  private async listen(): Promise<void> {
    try {
      const client = await this.connect();
      this.client = client;
      client.on('notification', ({ payload }) => {
        if (payload !== undefined) this.wakeUps.wake(payload);
      });
      client.once('end', () => {
        this.again();
      });
      await client.query(`LISTEN ${this.channel}`);
      // What was told while nobody listened.
      this.wakeUps.wakeAll();
      if (this.closed) await client.end();
    } catch {
      this.again();
    }
  }

  private again(): void {
    this.client = undefined;
    if (this.closed) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.listen(), RECONNECT_MS * (0.5 + Math.random())).unref();
  }
}
