import type { Command } from '../domain/commands';
import type { Decision } from '../domain/decision';
import type { OpeningFolding } from './opening-folding';
import type { CommandOutcome, Origin } from './submission';

/** A command whose caller waits for its outcome. */
export class Pending {
  /** What it was decided to be, on speculation: replaced when its batch is taken back. */
  decision: Decision | undefined = undefined;
  conflicts = 0;
  /** Was part of a batch that the log refuses: which command is to blame is being found out. */
  suspect = false;
  /** The caller has its answer, or was told that there will be none: never executed from now on. */
  settled = false;
  opening: OpeningFolding | undefined = undefined;

  constructor(
    readonly command: Command,
    readonly origin: Origin,
    readonly bytes: number,
    /** Monotonic ms when it came. */
    readonly since: number,
    /** Shares its append with no other command. */
    readonly alone: boolean,
    private readonly resolve: (outcome: CommandOutcome) => void,
    private readonly reject: (error: Error) => void,
  ) {}

  answer(outcome: CommandOutcome): void {
    if (this.settled) return;
    this.settled = true;
    this.resolve(outcome);
  }

  fail(error: Error): void {
    if (this.settled) return;
    this.settled = true;
    this.reject(error);
  }
}

/** Roughly what a command takes in memory: its texts and numbers. */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return 16 + value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let size = 32;
  for (const key in value) size += 16 + sizeOf((value as Record<string, unknown>)[key]);
  return size;
}
