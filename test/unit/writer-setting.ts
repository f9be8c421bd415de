import { randomUUID } from 'node:crypto';
import type { Answer } from '../../src/domain/answers';
import type { BudgetDefinition } from '../../src/domain/budget';
import type { Command } from '../../src/domain/commands';
import type { Recorded } from '../../src/domain/events';
import { NO_JOURNAL } from '../../src/domain/journal';
import type { LedgerState } from '../../src/domain/state';
import type { EventStore } from '../../src/event-store/event-store';
import { LEDGER_DECIDER } from '../../src/writer/ledger-decider';
import { LedgerWriter } from '../../src/writer/ledger-writer';
import type { WriterParts } from '../../src/writer/writer-parts';
import type { LedgerClock, WriterOptions } from '../../src/writer/options';
import type { Snapshot, SnapshotBound, WriterStorage } from '../../src/writer/storage';
import type { CommandOutcome, Origin } from '../../src/writer/submission';
import { catalogue } from './domain/ledger-spec';

export const NOON = Date.parse('2026-11-30T12:00:00Z');

/** Time as a test sets it. */
export class TestClock implements LedgerClock {
  fresh = true;
  refreshes = 0;
  readonly observed: number[] = [];

  constructor(public nowMs = NOON) {}

  now(): number {
    return this.nowMs;
  }
  isFresh(): boolean {
    return this.fresh;
  }
  refresh(): Promise<void> {
    this.refreshes += 1;
    this.fresh = true;
    return Promise.resolve();
  }
  observe(storeTimeMs: number): void {
    this.observed.push(storeTimeMs);
  }
}

/** The writer's storage in memory, for tests that need no database. */
export class KeptStorage implements WriterStorage {
  readonly registered = new Set<string>();
  readonly snapshots: Snapshot[] = [];

  registerLedger(id: string): Promise<void> {
    this.registered.add(id);
    return Promise.resolve();
  }
  ledgers(): Promise<string[]> {
    return Promise.resolve([...this.registered].sort());
  }
  saveSnapshot(snapshot: Snapshot): Promise<void> {
    this.snapshots.push(snapshot);
    return Promise.resolve();
  }
  newestSnapshot(
    ledger: string,
    schemaVersion: number,
    until: SnapshotBound = {},
  ): Promise<Snapshot | undefined> {
    const { revision = Infinity, atMs = Infinity } = until;
    const usable = this.snapshots.filter(
      (each) =>
        each.ledger === ledger &&
        each.schemaVersion === schemaVersion &&
        each.revision <= revision &&
        each.atMs <= atMs,
    );
    return Promise.resolve(usable.sort((a, b) => b.revision - a.revision)[0]);
  }
  dropSnapshot(_ledger: string, revision: number): Promise<void> {
    const at = this.snapshots.findIndex((each) => each.revision === revision);
    if (at >= 0) this.snapshots.splice(at, 1);
    return Promise.resolve();
  }
}

export const quietLog = { info: () => undefined, warn: () => undefined };

export const origin = (actor = 'test'): Origin => ({
  actor,
  correlationId: randomUUID(),
  causationId: randomUUID(),
});

export type Send = (command: Command) => Promise<CommandOutcome>;

/** A writer of ledger `main`, and what else a test wants to turn. */
export function writerOn(
  store: EventStore,
  parts: Partial<WriterParts> & { options?: Partial<WriterOptions> } = {},
) {
  const writer = new LedgerWriter('main', {
    store,
    clock: new TestClock(),
    catalogue,
    decider: LEDGER_DECIDER,
    log: quietLog,
    ...parts,
    options: { followAfterIdleMs: Infinity, ...parts.options },
  });
  const send: Send = (command) => writer.submit(command, origin());
  return { writer, send };
}

export const OPEN: Command = {
  type: 'OpenLedger',
  settings: { minOutputTokens: 0 },
};
export const define = (budget: BudgetDefinition): Command => ({
  type: 'DefineBudget',
  budget,
  countFrom: 'window',
});

/** The answer of an outcome, which must be one. */
export function answer(outcome: CommandOutcome): Answer {
  if (outcome.kind !== 'answered') throw new Error(`rejected: ${JSON.stringify(outcome.rejection)}`);
  return outcome.answer;
}

export async function wholeLog(store: EventStore, ledger = 'main'): Promise<Recorded[]> {
  const log: Recorded[] = [];
  for (;;) {
    const page = await store.read(ledger, { from: log.length, limit: 1_000 });
    for (const { bytes } of page) log.push(LEDGER_DECIDER.decode(bytes));
    if (page.length < 1_000) return log;
  }
}

/** What a fresh fold of the log gives, as text. */
export async function freshFold(store: EventStore): Promise<string> {
  const state: LedgerState = LEDGER_DECIDER.initialState('main');
  for (const event of await wholeLog(store)) {
    const at = { revision: event.revision, atMs: Date.parse(event.at) };
    LEDGER_DECIDER.evolve(state, event, at, NO_JOURNAL);
  }
  return LEDGER_DECIDER.serialise(state);
}

/** The state of a writer as it stands, speculation included, as text. */
export function stateOf(writer: LedgerWriter): string {
  const { speculation } = writer as unknown as {
    speculation: { state: LedgerState };
  };
  return LEDGER_DECIDER.serialise(speculation.state);
}

/** Lets the event loop turn until a condition holds; bounded. */
export async function until(holds: () => boolean | Promise<boolean>, withinMs = 20_000): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error('the condition did not come true in time');
    await new Promise((resolve) => setImmediate(resolve));
  }
}
