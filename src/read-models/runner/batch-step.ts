import type { Recorded } from '../../domain/events';
import { LogBrokenError, UnknownEventTypeError, isKnownType } from '../read-model';
import type { ReadModel, Sql } from '../read-model';
import { keepMemory, moveCheckpoints } from './checkpoints';
import type { Role } from './checkpoints';
import { transaction } from './transaction';

/** A version of a model's rows. */
export interface Target {
  readonly model: ReadModel;
  readonly version: number;
  readonly role: Role;
}

export interface Step {
  readonly ledger: string;
  /** All at position `events[0].revision − 1`. */
  readonly targets: readonly Target[];
  readonly events: readonly Recorded[];
}

/** `elsewhere`: a checkpoint was not where it was expected; nothing happened, read it again. */
export type StepResult = 'moved' | 'elsewhere';

/** Applies a batch to all targets and moves their checkpoints, or does nothing at all. */
export async function runStep(sql: Sql, step: Step): Promise<StepResult> {
  return (await transaction(sql, () => applyStep(sql, step))) ? 'moved' : 'elsewhere';
}

/** The same inside of a transaction of the caller's; false: roll it back. */
export async function applyStep(sql: Sql, { ledger, targets, events }: Step): Promise<boolean> {
  const first = events[0];
  const last = events.at(-1);
  if (!first || !last) throw new RangeError('a step without events');
  const memories = await moveCheckpoints(sql, {
    ledger,
    versions: targets.map(({ model, version, role }) => ({ model: model.name, version, role })),
    from: first.revision - 1,
    fromHash: first.metadata.previousHash,
    to: last.revision,
    toHash: last.metadata.hash,
  });
  if (memories.size !== targets.length) return false;
  for (const { model, version } of targets) {
    const memory = memories.get(model.name) ?? {};
    const kept = await model.apply(sql, { ledger, version, events, memory });
    if (JSON.stringify(kept) !== JSON.stringify(memory)) {
      await keepMemory(sql, ledger, model.name, version, kept);
    }
  }
  return true;
}

/**
 * What of a page can be applied from a position on: contiguous (throws LogBrokenError on a gap), and ending before an
 * event of an unknown type. Where that is the first, throws UnknownEventTypeError: it is never skipped.
 */
export function applicable(events: readonly Recorded[], afterPosition: number): readonly Recorded[] {
  let expected = afterPosition + 1;
  for (const [i, { revision, type }] of events.entries()) {
    if (revision !== expected) {
      throw new LogBrokenError(
        `revision ${String(expected)} expected, ${String(revision)} read: the log has a gap`,
      );
    }
    if (!isKnownType(type)) {
      if (i === 0) throw new UnknownEventTypeError(type, revision);
      return events.slice(0, i);
    }
    expected += 1;
  }
  return events;
}
