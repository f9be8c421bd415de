import { setTimeout as after } from 'node:timers/promises';
import type { Client } from 'pg';
import type { AppendResult, SealedEvent } from '../event-store';
import { AppendRefusedError, StoreUnavailableError, UnknownOutcomeError } from '../event-store';
import { appendError, isConflict } from './append-errors';
import { appendStatement } from './append-sql';
import type { AppendRow } from './append-sql';

/** A socket that was cut tells so at once; this bounds the wait where it does not. */
const ENDED_WITHIN_MS = 1_000;

/**
 * The connection appends go through, one statement after another. One that failed or fell silent is thrown away:
 * what is still on its way on it must not be mixed up with what comes next.
 */
export class AppendConnection {
  private client: Client | undefined;
  /** Resolves when the latest connection has ended: before that its place among the process's few is not free. */
  private ended: Promise<void> = Promise.resolve();
  private turn: Promise<void> = Promise.resolve();
  private closed = false;

  constructor(
    private readonly connect: () => Promise<Client>,
    private readonly timeoutMs: number,
  ) {}

  /** One at a time: the writers of all ledgers share the connection. */
  append(ledger: string, expectedRevision: number, events: readonly SealedEvent[]): Promise<AppendResult> {
    const result = this.turn.then(() => this.appendNow(ledger, expectedRevision, events));
    this.turn = result.then(
      () => undefined,
      () => undefined,
    );
    return result;
  }

  private async appendNow(
    ledger: string,
    expectedRevision: number,
    events: readonly SealedEvent[],
  ): Promise<AppendResult> {
    const client = await this.connected();
    try {
      const statement = appendStatement(ledger, expectedRevision, events);
      const { rows } = await this.within(client.query<AppendRow>(statement));
      const row = rows[0];
      if (row?.stored !== events.length) return { kind: 'conflict' };
      return { kind: 'appended', storeTime: row.now };
    } catch (error) {
      if (isConflict(error)) return { kind: 'conflict' };
      const failure = error instanceof UnknownOutcomeError ? error : appendError(error);
      // Also when the server said no: after a failover this one may still lead to the old, read-only primary.
      if (!(failure instanceof AppendRefusedError)) this.discard(client);
      throw failure;
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.client?.end().catch(() => undefined);
  }

  private async connected(): Promise<Client> {
    if (this.client) return this.client;
    await this.ended;
    const client = await this.opened();
    this.ended = new Promise((resolve) => {
      client.once('end', () => {
        if (this.client === client) this.client = undefined;
        resolve();
      });
    });
    this.client = client;
    return client;
  }

  private async opened(): Promise<Client> {
    if (this.closed) throw new StoreUnavailableError('the log is closed');
    let client: Client;
    try {
      client = await this.connect();
    } catch (error) {
      throw new StoreUnavailableError(error instanceof Error ? error.message : String(error), {
        cause: error,
      });
    }
    // close() may have come while the connection was being made; it could not end it.
    if (!this.isClosed()) return client;
    await client.end().catch(() => undefined);
    throw new StoreUnavailableError('the log is closed');
  }

  private isClosed(): boolean {
    return this.closed;
  }

  private async within<T>(query: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new UnknownOutcomeError(`no answer to an append within ${this.timeoutMs} ms`));
      }, this.timeoutMs);
    });
    try {
      return await Promise.race([query, silence]);
    } finally {
      clearTimeout(timer);
      query.catch(() => undefined); // it may still fail after we gave it up
    }
  }

  /** Cuts the socket: `end()` would wait for the statement that nobody waits for any more. */
  private discard(client: Client): void {
    if (this.client === client) this.client = undefined;
    this.ended = Promise.race([this.ended, after(ENDED_WITHIN_MS, undefined, { ref: false })]);
    const { connection } = client as unknown as { connection?: { stream?: { destroy(): void } } };
    connection?.stream?.destroy();
    client.end().catch(() => undefined);
  }
}
