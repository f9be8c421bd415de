import type { Client } from 'pg';
import type { AppendResult, SealedEvent } from '../event-store';
import { StoreUnavailableError, UnknownOutcomeError } from '../event-store';
import { appendError, isConflict } from './append-errors';
import { appendStatement } from './append-sql';
import type { AppendRow } from './append-sql';

/**
 * The connection appends go through, one statement after another. One that failed or fell silent is thrown away:
 * what is still on its way on it must not be mixed up with what comes next.
 */
export class AppendConnection {
  private client: Promise<Client> | undefined;
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
      if (failure instanceof UnknownOutcomeError) this.discard(client);
      throw failure;
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    const client = await this.client?.catch(() => undefined);
    await client?.end().catch(() => undefined);
  }

  private async connected(): Promise<Client> {
    if (this.closed) throw new StoreUnavailableError('the log is closed');
    this.client ??= this.connect().then((client) => {
      client.once('end', () => {
        this.client = undefined;
      });
      return client;
    });
    try {
      return await this.client;
    } catch (error) {
      this.client = undefined;
      throw new StoreUnavailableError(error instanceof Error ? error.message : String(error), {
        cause: error,
      });
    }
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
    this.client = undefined;
    const { connection } = client as unknown as { connection?: { stream?: { destroy(): void } } };
    connection?.stream?.destroy();
    client.end().catch(() => undefined);
  }
}
