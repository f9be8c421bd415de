import { InMemoryEventStore } from '../../src/event-store/memory/in-memory-event-store';
import type { CommandOutcome } from '../../src/writer/submission';
import { LogUnavailableError } from '../../src/writer/submission';
import { budget, check } from './domain/ledger-spec';
import { FaultyStore } from './faulty-store';
import type { Fault } from './faulty-store';
import {
  KeptStorage,
  OPEN,
  TestClock,
  define,
  freshFold,
  stateOf,
  until,
  wholeLog,
  writerOn,
} from './writer-setting';

/** mulberry32: the same seed gives the same storm. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const FAULTS: Fault[] = ['time-out before commit', 'time-out after commit', 'late commit', 'unavailable'];

interface Told {
  readonly name: string;
  readonly seconds: number;
  outcome: CommandOutcome | undefined;
  error: unknown;
}

/**
 * Three writers on one ledger, every third append failing somehow. Settings are changed to values that occur once:
 * nothing but the writer keeps such a command from happening twice.
 */
async function storm(seed: number) {
  const next = random(seed);
  const inner = new InMemoryEventStore();
  const storage = new KeptStorage();
  const clock = new TestClock();
  const parts = Array.from({ length: 3 }, () => {
    const store = new FaultyStore(inner);
    const options = {
      // Expiries of the real timer would move the log while it is compared.
      expiryEveryMs: 3_600_000,
      maxBatchCommands: 1 + Math.floor(next() * 20),
      maxBatchBytes: 4_000 + Math.floor(next() * 40_000),
      sliceCommands: 1 + Math.floor(next() * 30),
      maxConflicts: 1_000,
      answerWithinMs: 20_000,
      outagePauseMs: 1,
      outagePauseCapMs: 3,
      snapshotEvents: 40,
      snapshotMinEvents: 40,
      recentEvents: 64,
      pageEvents: 7,
      followAfterIdleMs: 1,
    };
    return { store, ...writerOn(store, { clock, storage, options }) };
  });
  await parts[0]?.send(OPEN);
  await parts[0]?.send(define(budget('all', '0.3')));
  for (const { store } of parts) {
    store.refuses = ({ bytes }) => bytes.includes('poison');
    const append = store.append.bind(store);
    store.append = (...args) => {
      if (next() < 0.33) store.faults.push(FAULTS[Math.floor(next() * FAULTS.length)] ?? 'unavailable');
      return append(...args);
    };
  }
  const told: Told[] = [];
  const calls: Promise<void>[] = [];
  for (let i = 0; i < 150; i += 1) {
    const part = parts[Math.floor(next() * parts.length)];
    if (!part) continue;
    const name = next() < 0.03 ? `poison${i}` : `r${i % 120}`;
    const entry: Told = {
      name,
      seconds: 1_000 + i,
      outcome: undefined,
      error: undefined,
    };
    told.push(entry);
    const command =
      i % 3 === 0
        ? ({
            type: 'ChangeSettings',
            settings: { reservationTtlSeconds: entry.seconds },
          } as const)
        : check(name, 0.01);
    if (i % 3 !== 0) Object.assign(entry, { seconds: 0 });
    calls.push(
      part.send(command).then(
        (outcome) => void (entry.outcome = outcome),
        (error: unknown) => void (entry.error = error),
      ),
    );
    if (next() < 0.2) await new Promise((resolve) => setImmediate(resolve));
    if (next() < 0.05) clock.nowMs += Math.floor(next() * 700_000);
  }
  await Promise.all(calls);
  for (const { store } of parts) store.append = FaultyStore.prototype.append.bind(store);
  for (const { store } of parts) store.faults.length = 0;
  return { inner, parts, told };
}

test.each(Array.from({ length: 12 }, (_, i) => i + 1))(
  'storm %i: nothing is lost, doubled or told wrongly',
  async (seed) => {
    const { inner, parts, told } = await storm(seed);
    // What was left unknown is known once every writer has stored something more.
    for (const [i, { send }] of parts.entries()) await send(check(`after${i}`, 0.01));
    const log = await wholeLog(inner);
    let previous = '0'.repeat(64);
    for (const [i, event] of log.entries()) {
      expect([event.revision, event.metadata.previousHash]).toEqual([i, previous]);
      expect(i === 0 || event.at >= (log[i - 1]?.at ?? '')).toBe(true);
      previous = event.metadata.hash;
    }
    expect(new Set(log.map(({ id }) => id)).size).toBe(log.length);
    const changes = new Map<number, number>();
    const answered = new Map<string, number>();
    for (const event of log) {
      if (event.type === 'SettingsChanged') {
        const { reservationTtlSeconds: seconds } = event.data.settings;
        changes.set(seconds, (changes.get(seconds) ?? 0) + 1);
      }
      if (event.type === 'SpendReserved' || event.type === 'SpendRefused') {
        answered.set(event.data.requestId, (answered.get(event.data.requestId) ?? 0) + 1);
      }
    }
    for (const [name, count] of answered) expect([name, count]).toEqual([name, 1]);
    for (const { name, seconds, outcome, error } of told) {
      const none = error instanceof LogUnavailableError && error.outcome === 'none';
      if (seconds > 0) {
        const happened = changes.get(seconds) ?? 0;
        if (outcome) expect([seconds, happened]).toEqual([seconds, 1]);
        else if (none) expect([seconds, happened]).toEqual([seconds, 0]);
        else expect(happened).toBeLessThanOrEqual(1);
      } else if (outcome?.kind === 'answered') {
        const event = log[outcome.answer.position];
        expect(event?.type).toBe(outcome.answer.kind === 'check-allowed' ? 'SpendReserved' : 'SpendRefused');
        expect(event?.data).toMatchObject({ requestId: name });
      }
    }
    const fresh = await freshFold(inner);
    for (const { writer } of parts) {
      await until(() => writer.confirmed().revision === log.length - 1);
      expect(stateOf(writer)).toBe(fresh);
    }
    await Promise.all(parts.map(({ writer }) => writer.close()));
  },
);
