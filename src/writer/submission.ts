import type { Answer } from '../domain/answers';
import type { Command } from '../domain/commands';
import type { Rejection } from '../domain/rejections';

/** Who asks, for the envelope's metadata. */
export interface Origin {
  /** Key id, "policy", "system". */
  readonly actor: string;
  readonly correlationId: string;
  /** Id of this command. */
  readonly causationId: string;
  readonly traceparent?: string;
}

/** What became of a command. It is told only when the revision it was judged at is durable. */
export type CommandOutcome =
  | {
      readonly kind: 'answered';
      readonly answer: Answer;
      readonly replayed: boolean;
    }
  | { readonly kind: 'rejected'; readonly rejection: Rejection };

/** The log cannot be written now. `none`: certainly nothing was stored; `unknown`: ask again with the same identity. */
export class LogUnavailableError extends Error {
  override readonly name = 'LogUnavailableError';
  constructor(
    readonly outcome: 'none' | 'unknown',
    readonly retryAfterSeconds: number,
    message: string,
  ) {
    super(message);
  }
}

/** The queue is full, or conflicts would not end: 503 early instead of a slow answer late. Nothing was stored. */
export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
  constructor(
    readonly retryAfterSeconds: number,
    message: string,
  ) {
    super(message);
  }
}

/** Takes commands for ledgers; implemented by `writer/writers.ts`. */
export abstract class CommandGateway {
  /** Throws LogUnavailableError, OverloadedError; an unknown ledger is a rejection `ledger_not_found`. */
  abstract submit(ledger: string, command: Command, origin: Origin): Promise<CommandOutcome>;
}
