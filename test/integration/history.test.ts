import { writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import fc from 'fast-check';
import type { Command } from '../../src/domain/commands';
import type { Recorded } from '../../src/domain/events';
import { STATE_SCHEMA_VERSION, serialiseState } from '../../src/domain/snapshot';
import { decodeEvent } from '../../src/domain/upcast';
import type { SealedEvent } from '../../src/event-store/event-store';
import { InMemoryEventStore } from '../../src/event-store/memory/in-memory-event-store';
import { HistoryReader } from '../../src/queries/history/history-reader';
import type { HistoryOptions } from '../../src/queries/history/history-reader';
import { stateAt } from '../../src/queries/history/state-at';
import { verifyLog } from '../../src/queries/history/verify';
import { readTotals } from '../../src/read-models/totals';
import type { Totals } from '../../src/read-models/totals';
import type { Snapshot } from '../../src/writer/storage';
import { sealed, storeLog } from '../e2e/reads-log';
import { createTestDatabase } from '../support/database';
import { quiet } from '../support/postgres-server';
import { openBench } from '../support/read-model-bench';
import type { ReadModelBench } from '../support/read-model-bench';
import {
  ScriptedLedger,
  budget,
  check,
  chargeIn,
  open,
  reservationIn,
  usage,
} from '../support/scripted-ledger';

const WORKER = path.join(__dirname, '../../dist/queries/history/worker.js');
const NO_SNAPSHOTS = { newestSnapshot: () => Promise.resolve(undefined) };

let bench: ReadModelBench;
beforeAll(async () => {
  bench = await openBench();
});
afterAll(() => bench.close());

type Step = readonly [kind: number, a: number, b: number, minutes: number];

const BUDGETS: readonly Command[] = [
  budget('all'),
  budget('all', { setAsides: [{ match: { workload: 'report' }, amount: '1' }] }),
  budget('all', { window: 'week' }),
  budget('visitor', { each: ['subject'] }),
  budget('life', { window: 'lifetime', match: { workload: 'report' } }),
  budget('sale', {
    window: { from: '2026-11-30T00:00:00.000Z', to: '2026-12-01T06:00:00.000Z' },
    mode: 'warn',
  }),
  budget('sale', {
    window: { from: '2026-11-30T00:00:00.000Z', to: '2026-12-03T06:00:00.000Z' },
    mode: 'warn',
  }),
];

function commandOf(ledger: ScriptedLedger, i: number, [kind, a, b]: Step): Command | undefined {
  const reservationId = [...ledger.state.reservations.keys()][
    a % Math.max(ledger.state.reservations.size, 1)
  ];
  const charge = [...ledger.state.charges.keys()][a % Math.max(ledger.state.charges.size, 1)];
  if (kind < 5) {
    const workload = a % 2 === 0 ? 'chat' : 'report';
    return check(`r${String(i)}`, {
      inputTokens: 1_000 * b,
      subject: `s${String(a % 3)}`,
      ttlSeconds: 60 * b,
      workload,
    });
  }
  if (kind === 9) {
    const define = BUDGETS[a % BUDGETS.length];
    return b % 4 === 0 && define?.type === 'DefineBudget' ? { ...define, countFrom: 'now' } : define;
  }
  if (kind === 10) return { type: 'RetireBudget', id: ['all', 'visitor', 'life', 'sale'][a % 4] ?? 'all' };
  if (kind === 11)
    return { type: 'ChangeSettings', settings: { onExpiry: a % 2 === 0 ? 'release' : 'assume-spent' } };
  if (kind === 12) return { type: 'ExpireDue', limit: 3 };
  if (reservationId === undefined) return undefined;
  if (kind < 8) return usage(reservationId, b * 700, { providerRequestId: `p${String(b % 2)}` });
  if (a % 3 === 0 && charge !== undefined)
    return {
      type: 'CorrectCharge',
      chargeId: charge,
      correctionId: `c${String(i)}`,
      amount: String(b),
      reason: 'x',
      bodyHash: `c${String(i)}`,
    };
  return b % 2 === 0
    ? { type: 'ReleaseReservation', reservationId }
    : { type: 'ExtendReservation', reservationId, ttlSeconds: 60 * b };
}

function play(steps: readonly Step[]): ScriptedLedger {
  const ledger = new ScriptedLedger();
  ledger.run(open('America/New_York'));
  for (const [i, step] of steps.entries()) {
    ledger.nowMs += step[3] * 60_000;
    const command = commandOf(ledger, i, step);
    if (command) ledger.run(command);
  }
  return ledger;
}

async function logOf(ledger: ScriptedLedger): Promise<InMemoryEventStore> {
  const log = new InMemoryEventStore();
  await log.append(ledger.ledger, -1, sealed(ledger));
  return log;
}

/** What real read models say after seeing the whole log. */
async function projected(log: InMemoryEventStore, ledger: string): Promise<Totals> {
  await bench.clear();
  const events: Recorded[] = (await log.read(ledger, { limit: 100_000 })).map(({ bytes }) =>
    decodeEvent(bytes),
  );
  const projection = bench.process({
    recent: () => undefined,
    read: (_, from, max) => Promise.resolve(events.slice(from, from + max)),
    head: () => Promise.resolve(events.length - 1),
    onNew: () => () => undefined,
  });
  projection.follow(ledger);
  expect(await projection.waitFor(ledger, events.length - 1, 10_000)).toBe('seen');
  const totals = await readTotals(bench.pool, ledger);
  await bench.clear();
  if (!totals) throw new Error('nothing was projected');
  return totals;
}

const steps = fc.array(fc.tuple(fc.nat(12), fc.nat(30), fc.integer({ min: 1, max: 90 }), fc.nat(400)), {
  minLength: 10,
  maxLength: 60,
});

describe('a fold of totals apart from the read models', () => {
  test('agrees with them over any history', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (history) => {
        const ledger = play(history);
        const log = await logOf(ledger);
        const result = await verifyLog(log, 'main', ledger.events.length - 1, await projected(log, 'main'));
        expect(result.faults).toEqual([]);
        expect(result.totals?.readModel).toEqual(result.totals?.fold);
      }),
      { numRuns: 25, endOnFailure: true },
    );
  }, 120_000);
});

describe('a log that is not as it was written', () => {
  const events = (): SealedEvent[] => {
    const ledger = new ScriptedLedger();
    ledger.run(open());
    ledger.run(budget('all'));
    ledger.run(usage(reservationIn(ledger.run(check('r1'))), 1_000));
    ledger.run(check('r2'));
    return sealed(ledger);
  };
  const verified = (stored: readonly SealedEvent[], head = stored.length - 1) =>
    verifyLog(
      {
        read: (_, { from = 0, limit = 1 } = {}) =>
          Promise.resolve(stored.filter(({ revision }) => revision >= from).slice(0, limit)),
      },
      'main',
      head,
      undefined,
    );

  test('as written it verifies, and its sums are those of its events', async () => {
    const result = await verified(events());
    expect(result).toMatchObject({ ok: true, faults: [], events: events().length });
    expect(result.totals?.fold).toMatchObject({ charged: '0.003', held: '0.11', heldReservations: 1 });
  });

  test('any one changed byte of any event is found at that event', async () => {
    const whole = events();
    for (const [revision, event] of whole.entries()) {
      for (let i = 0; i < event.bytes.length; i += 37) {
        const bytes = Buffer.from(event.bytes);
        bytes[i] = (bytes[i] ?? 0) ^ 1;
        const { ok, faults } = await verified(whole.with(revision, { ...event, bytes }));
        expect([ok, faults[0]]).toEqual([false, expect.stringMatching(`^revision ${String(revision)} `)]);
      }
    }
  });

  test('a missing event, a cut-off end and a foreign row are found', async () => {
    const whole = events();
    const gap = await verified(
      whole.filter(({ revision }) => revision !== 3),
      whole.length - 1,
    );
    expect(gap.faults[0]).toBe('revision 3 is missing, up to revision 3');
    const cut = await verified(whole.slice(0, -1), whole.length - 1);
    const end = String(whole.length - 1);
    expect(cut.faults).toEqual([`revision ${end} is missing: the head was revision ${end}`]);
    const [first, ...rest] = whole;
    if (!first) throw new Error('no events');
    const renamed = await verified([{ ...first, type: 'SettingsChanged' }, ...rest]);
    expect(renamed.faults).toEqual(['revision 0 is stored under another id or type']);
    const moved = await verified([{ ...first, at: first.at + 1 }, ...rest]);
    expect(moved.faults).toEqual(['revision 0 is stored under another time']);
  });
});

describe('the state at a revision', () => {
  test('is the same from a snapshot on as from the beginning, and foreign or damaged snapshots are passed over', async () => {
    const ledger = play(
      Array.from({ length: 60 }, (_, i): Step => [(i * 5) % 13, i, 1 + ((i * 7) % 40), (i * 11) % 200]),
    );
    const log = await logOf(ledger);
    const head = ledger.events.length - 1;
    const middle = Math.floor(head / 2);
    const whole = serialiseState(await stateAt(log, NO_SNAPSHOTS, { ledger: 'main', revision: head }));
    const stored = async (revision: number, damage?: 'hash' | 'body'): Promise<Snapshot> => {
      const [event] = await log.read('main', { from: revision, limit: 1 });
      if (!event) throw new Error('no such event');
      const state = await stateAt(log, NO_SNAPSHOTS, { ledger: 'main', revision });
      const body = await promisify(gzip)(serialiseState(state));
      return {
        ledger: 'main',
        revision,
        schemaVersion: STATE_SCHEMA_VERSION,
        hash: damage === 'hash' ? 'f'.repeat(64) : decodeEvent(event.bytes).metadata.hash,
        atMs: event.at,
        body: damage === 'body' ? body.subarray(0, 40) : body,
      };
    };
    const snapshots = [
      await stored(middle),
      await stored(middle + 3, 'body'),
      await stored(middle + 6, 'hash'),
    ];
    const asked: number[] = [];
    const newestSnapshot = (_: string, __: number, until: { revision?: number } = {}) => {
      asked.push(until.revision ?? -1);
      return Promise.resolve(snapshots.findLast(({ revision }) => revision <= (until.revision ?? Infinity)));
    };
    const state = await stateAt(log, { newestSnapshot }, { ledger: 'main', revision: head });
    expect(serialiseState(state)).toBe(whole);
    expect(asked).toEqual([head, middle + 5, middle + 2]);
  });

  test('what is due by a moment has happened, though no event says so yet', async () => {
    const ledger = new ScriptedLedger();
    ledger.run(open());
    ledger.run({ type: 'ChangeSettings', settings: { onExpiry: 'release' } });
    const id = reservationIn(ledger.run(check('r1', { ttlSeconds: 60 })));
    const log = await logOf(ledger);
    const at = (atMs: number) =>
      stateAt(log, NO_SNAPSHOTS, { ledger: 'main', revision: ledger.events.length - 1, atMs });
    expect((await at(ledger.nowMs + 59_999)).reservations.get(id)?.status).toBe('held');
    expect((await at(ledger.nowMs + 60_000)).reservations.get(id)?.status).toBe('expired-released');
  });
});

describe('the history worker', () => {
  const reader = (url: string, options: Partial<HistoryOptions> = {}): HistoryReader =>
    new HistoryReader({ database: { url, schema: 'spend_ledger' }, log: quiet, script: WORKER, ...options });

  test('folds in a thread of its own; more questions than may wait are refused at once', async () => {
    const database = await createTestDatabase();
    const ledger = new ScriptedLedger();
    ledger.run(open());
    const charged = ledger.run(usage(reservationIn(ledger.run(check('r1'))), 1_000));
    expect(chargeIn(charged)).toMatch(/^chg_/);
    await storeLog(database, ledger);
    const history = reader(database.url, { queueLimit: 2 });
    try {
      const asked = Array.from({ length: 5 }, () => history.run({ kind: 'verify', ledger: 'main' }));
      const settled = await Promise.allSettled(asked);
      expect(settled.map(({ status }) => status)).toEqual([
        'fulfilled',
        'fulfilled',
        'fulfilled',
        'rejected',
        'rejected',
      ]);
      expect(await asked[0]).toMatchObject({ ok: true, events: ledger.events.length });
      expect(settled.at(-1)).toMatchObject({ reason: { code: 'history_busy' } });
      const state = await history.run({ kind: 'state', ledger: 'main', revision: 0 });
      expect(state).toMatchObject({ revision: 0, totals: { charged: '0', held: '0' } });
    } finally {
      await history.close();
      await database.drop();
    }
  });

  test('a job that takes too long costs that job alone', async () => {
    const silent = path.join(os.tmpdir(), `silent-${String(process.pid)}.js`);
    await writeFile(
      silent,
      `const { parentPort } = require('node:worker_threads');
       parentPort.on('message', (job) => job.ledger === 'slow' || parentPort.postMessage({ kind: 'done', result: job }));`,
    );
    const history = reader('postgres://nowhere', { script: silent, timeLimitMs: 3_000 });
    const slow = history.run({ kind: 'verify', ledger: 'slow' });
    const quick = history.run({ kind: 'verify', ledger: 'quick' });
    await expect(slow).rejects.toMatchObject({ code: 'history_timeout' });
    await expect(quick).resolves.toMatchObject({ ledger: 'quick' });
    await history.close();
  });

  test('a thread that dies fails its job, and the next job gets another', async () => {
    const dying = path.join(os.tmpdir(), `dying-${String(process.pid)}.js`);
    await writeFile(
      dying,
      `const { parentPort } = require('node:worker_threads');
       parentPort.on('message', (job) => job.ledger === 'bad' ? process.exit(3) : parentPort.postMessage({ kind: 'done', result: job }));`,
    );
    const history = reader('postgres://nowhere', { script: dying });
    await expect(history.run({ kind: 'verify', ledger: 'bad' })).rejects.toMatchObject({
      code: 'history_failed',
    });
    await expect(history.run({ kind: 'verify', ledger: 'good' })).resolves.toMatchObject({ ledger: 'good' });
    await history.close();
    await expect(history.run({ kind: 'verify', ledger: 'good' })).rejects.toMatchObject({
      code: 'history_busy',
    });
  });
});
