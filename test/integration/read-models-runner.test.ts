import pg from 'pg';
import type { LedgerEvent } from '../../src/domain/events';
import type { EventSource } from '../../src/read-models/event-source';
import type { ReadModel } from '../../src/read-models/read-model';
import { READ_MODELS } from '../../src/read-models/read-models';
import type { Projection } from '../../src/read-models/runner/projection';
import { rebuild } from '../../src/read-models/runner/rebuild';
import type { RebuildProgress } from '../../src/read-models/runner/rebuild';
import { spendModel } from '../../src/read-models/spend/spend-model';
import { dump, openBench, until } from '../support/read-model-bench';
import type { ReadModelBench } from '../support/read-model-bench';
import { ScriptedLedger, budget, check, open, reservationIn, usage } from '../support/scripted-ledger';

let bench: ReadModelBench;
beforeAll(async () => {
  bench = await openBench();
});
afterEach(() => bench.clear());
afterAll(() => bench.close());

/** Checks, a third of them settled in the next round. */
function busy(ledger: ScriptedLedger, rounds: number, prefix = 'r'): void {
  for (let i = 0; i < rounds; i += 1) {
    ledger.nowMs += 1_000;
    const decision = ledger.run(
      check(`${prefix}${String(i)}`, { inputTokens: 10, subject: `s${String(i % 5)}` }),
    );
    if (i % 3 > 0) ledger.run(usage(reservationIn(decision), 100 + i));
  }
}

function busyLedger(rounds: number): ScriptedLedger {
  const ledger = new ScriptedLedger();
  ledger.run(open());
  ledger.run(budget('day', { each: ['subject'] }));
  busy(ledger, rounds);
  return ledger;
}

const head = (ledger: ScriptedLedger): number => ledger.events.length - 1;

async function seen(projection: Projection, ledger: ScriptedLedger): Promise<void> {
  expect(await projection.waitFor('main', head(ledger), 15_000)).toBe('seen');
}

/** What a single undisturbed runner makes of the ledger. */
async function reference(ledger: ScriptedLedger): Promise<Record<string, unknown[]>> {
  const projection = bench.process(ledger);
  projection.follow('main');
  await seen(projection, ledger);
  const tables = await dump(bench.pool);
  await bench.clear();
  return tables;
}

const positions = async (): Promise<Record<string, number>> => {
  const { rows } = await bench.pool.query<{ model: string; position: string }>(
    "SELECT model, position FROM read_model_checkpoints WHERE role = 'active'",
  );
  return Object.fromEntries(rows.map(({ model, position }) => [model, Number(position)]));
};

const stateOf = (projection: Projection, model: string) =>
  projection.status()[0]?.models.find(({ name }) => name === model);

/** A model that fails as long as it is told to. */
function fragile(inner: ReadModel): ReadModel & { broken: boolean; attempts: number } {
  return {
    name: inner.name,
    shape: inner.shape,
    tables: inner.tables,
    broken: false,
    attempts: 0,
    async apply(sql, batch) {
      this.attempts += 1;
      const memory = await inner.apply(sql, batch);
      if (this.broken) throw new Error('out of order');
      return memory;
    },
  };
}

const withModel = (model: ReadModel): ReadModel[] =>
  READ_MODELS.map((each) => (each.name === model.name ? model : each));

describe('the runner', () => {
  it('casebook 35: moves every checkpoint past events that a model does not care for', async () => {
    const ledger = busyLedger(10);
    const projection = bench.process(ledger);
    projection.follow('main');
    await seen(projection, ledger);
    const last = head(ledger);
    expect(await positions()).toEqual({ spend: last, budgets: last, settings: last, 'event-index': last });
    expect(projection.position('main')).toBe(last);
    expect(projection.status()).toMatchObject([{ ledger: 'main', isLeading: true }]);
    expect(projection.status()[0]?.models.map(({ state, lag }) => [state, lag])).toEqual(
      Array(4).fill(['live', 0]),
    );
  });

  it('takes new events as they come, from memory or from the log', async () => {
    const ledger = busyLedger(2);
    ledger.memoryFrom = Number.POSITIVE_INFINITY;
    const projection = bench.process(ledger, { pollMs: 60_000 });
    projection.follow('main');
    await seen(projection, ledger);
    const reads = ledger.reads;
    ledger.memoryFrom = 0;
    busy(ledger, 5, 'n');
    await seen(projection, ledger);
    expect(ledger.reads).toBe(reads);
  });

  it('says behind when the position does not come in time, and when nobody follows the ledger', async () => {
    const ledger = busyLedger(1);
    const projection = bench.process(ledger);
    projection.follow('main');
    expect(await projection.waitFor('main', head(ledger) + 1, 200)).toBe('behind');
    expect(await projection.waitFor('other', 0, 10_000)).toBe('behind');
    expect(projection.position('other')).toBe(-1);
  });

  it('casebook 35 and 37: killed between any two statements it counts every event once', async () => {
    const ledger = busyLedger(12);
    const expected = await reference(ledger);
    let survivedAfter = 0;
    for (let killAt = 1; survivedAfter === 0; killAt += 1) {
      let statements = 0;
      const connect = async (): Promise<pg.Client> => {
        const client = await bench.client();
        const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
        const counted = async (...args: unknown[]): Promise<unknown> => {
          statements += 1;
          if (statements !== killAt) return query(...args);
          // Half of the times the statement still reaches the server, and its answer is lost.
          const lost = killAt % 2 === 0 ? query(...args) : Promise.resolve();
          await lost.catch(() => undefined);
          client.connection.stream.destroy();
          throw new Error('Connection terminated');
        };
        return Object.assign(client, { query: counted });
      };
      const projection = bench.process(ledger, { connect, batchSize: 9, pollMs: 5 });
      projection.follow('main');
      await seen(projection, ledger);
      if (statements < killAt) survivedAfter = killAt;
      expect(await dump(bench.pool)).toEqual(expected);
      await bench.clear();
    }
    expect(survivedAfter).toBeGreaterThan(40);
  }, 120_000);

  it('casebook 3 and 43: three processes at once on one database count every event once', async () => {
    const ledger = busyLedger(150);
    const expected = await reference(ledger);
    // Without the patience that the lock gives: all of them work at the same time.
    const runners = [7, 11, 13].map((batchSize) =>
      bench.process(ledger, { batchSize, standInAfterMs: -1, pollMs: 1 }),
    );
    for (const runner of runners) runner.follow('main');
    await Promise.all(runners.map((runner) => seen(runner, ledger)));
    expect(await dump(bench.pool)).toEqual(expected);
    expect(runners.flatMap((runner) => runner.status()[0]?.models.map(({ error }) => error))).toEqual(
      Array(12).fill(undefined),
    );
  });

  it('lets one process work and the others follow, and takes over when it stops', async () => {
    const ledger = busyLedger(5);
    const first = bench.process(ledger);
    first.follow('main');
    await seen(first, ledger);
    const second = bench.process(ledger);
    second.follow('main');
    await seen(second, ledger);
    expect(second.status()[0]?.isLeading).toBe(false);
    busy(ledger, 5, 'n');
    await seen(second, ledger);
    expect(second.status()[0]?.isLeading).toBe(false);
    await first.stop();
    busy(ledger, 5, 'm');
    await seen(second, ledger);
    expect(second.status()[0]?.isLeading).toBe(true);
  });

  it('casebook 38: goes on when the process that has the lock hangs', async () => {
    const ledger = busyLedger(5);
    const hung: EventSource = {
      recent: () => undefined,
      read: () => new Promise(() => undefined),
      head: () => new Promise(() => undefined),
      onNew: () => () => undefined,
    };
    const first = bench.process(hung);
    first.follow('main');
    await until(() => first.status()[0]?.isLeading === true, 'the first has the lock');
    const second = bench.process(ledger, { standInAfterMs: 300 });
    second.follow('main');
    await seen(second, ledger);
    expect(second.status()[0]?.isLeading).toBe(false);
    await bench.abandon(first);
  });
});

describe('a model in trouble', () => {
  it('casebook 41: stops alone, shows why, and resumes by itself', async () => {
    const ledger = busyLedger(4);
    const expected = await reference(ledger);
    const model = fragile(spendModel);
    model.broken = true;
    const projection = bench.process(ledger, { models: withModel(model), batchSize: 5 });
    projection.follow('main');
    expect(
      await projection.waitFor('main', head(ledger), 10_000, ['budgets', 'settings', 'event-index']),
    ).toBe('seen');
    await until(() => stateOf(projection, 'spend')?.state === 'failed', 'the model stops');
    expect(stateOf(projection, 'spend')).toMatchObject({
      position: -1,
      error: 'out of order',
      lag: head(ledger) + 1,
    });
    expect(stateOf(projection, 'budgets')).toMatchObject({ state: 'live', position: head(ledger) });
    expect((await positions())['spend']).toBe(-1);
    model.broken = false;
    await seen(projection, ledger);
    await until(() => stateOf(projection, 'spend')?.state === 'live', 'the model is back in the feed');
    expect(stateOf(projection, 'spend')?.error).toBeUndefined();
    expect(await dump(bench.pool)).toEqual(expected);
  });

  it('casebook 35: never has its checkpoint moved without its effects', async () => {
    const ledger = busyLedger(4);
    const model = fragile(spendModel);
    const projection = bench.process(ledger, { models: withModel(model) });
    projection.follow('main');
    await seen(projection, ledger);
    const before = await dump(bench.pool);
    const stopped = head(ledger);
    model.broken = true;
    model.attempts = 0;
    busy(ledger, 3, 'n');
    await until(() => model.attempts >= 3, 'it is tried several times');
    expect((await positions())['spend']).toBe(stopped);
    expect((await dump(bench.pool))['attempts']).toEqual(before['attempts']);
  });

  it('casebook 35: stops at an event of an unknown type and skips nothing', async () => {
    const ledger = busyLedger(2);
    const unknownAt = ledger.events.length;
    ledger.record([{ type: 'AlertRaised', data: { kind: 'duplicate_send', key: 'k', detail: 'd' } }]);
    busy(ledger, 2, 'n');
    const alert = ledger.events[unknownAt];
    if (!alert) throw new Error('no such event');
    ledger.events[unknownAt] = { ...alert, type: 'MoonRose' } as unknown as typeof alert;
    const projection = bench.process(ledger);
    projection.follow('main');
    await until(() => stateOf(projection, 'budgets')?.error !== undefined, 'the models stop');
    expect(projection.position('main')).toBe(unknownAt - 1);
    const error = `event ${String(unknownAt)} is of unknown type MoonRose`;
    await until(
      () => projection.status()[0]?.models.every((model) => model.error === error) === true,
      'all say why',
    );
    ledger.events[unknownAt] = alert;
    await seen(projection, ledger);
    const states = (): unknown[] => projection.status()[0]?.models.map(({ state }) => state) ?? [];
    await until(() => states().every((state) => state === 'live'), 'all live again');
  });

  it('casebook 34 and 36: stops at a gap with a clear error, and goes on when it is filled', async () => {
    const ledger = busyLedger(3);
    const gap = head(ledger) - 1;
    const [missing] = ledger.events.splice(gap, 1);
    const projection = bench.process(ledger);
    projection.follow('main');
    await until(() => stateOf(projection, 'spend')?.error !== undefined, 'the models stop');
    expect(stateOf(projection, 'spend')?.error).toBe(
      `revision ${String(gap)} expected, ${String(gap + 1)} read: the log has a gap`,
    );
    if (missing) ledger.events.splice(gap, 0, missing);
    await seen(projection, ledger);
  });

  it('refuses to go on with another log than the one its rows came from', async () => {
    const ledger = busyLedger(3);
    const first = bench.process(ledger);
    first.follow('main');
    await seen(first, ledger);
    const stopped = head(ledger);
    await first.stop();
    const other = new ScriptedLedger();
    other.run(open('Europe/Berlin'));
    busy(other, 20);
    const second = bench.process(other);
    second.follow('main');
    await until(() => stateOf(second, 'spend')?.state === 'failed', 'it stops');
    expect(stateOf(second, 'spend')?.error).toContain(`another hash at revision ${String(stopped)}`);
    expect((await positions())['spend']).toBe(stopped);
  });
});

describe('a rebuild', () => {
  it('fills new rows beside the served ones while events arrive, and swaps them in for another process', async () => {
    const ledger = busyLedger(60);
    const projection = bench.process(ledger);
    projection.follow('main');
    await seen(projection, ledger);
    // Damage that only a rebuild repairs.
    await bench.pool.query('UPDATE attempts SET cost = 1 WHERE cost IS NOT NULL');
    const progress: RebuildProgress[] = [];
    await rebuild({
      ledger: 'main',
      model: spendModel,
      source: ledger,
      pool: bench.pool,
      batchSize: 10,
      onProgress: (each) => {
        progress.push(each);
        busy(ledger, 1, `p${String(progress.length)}-`);
      },
    });
    busy(ledger, 3, 'after');
    await seen(projection, ledger);
    expect(progress[0]).toMatchObject({ ledger: 'main', model: 'spend', position: -1 });
    expect(progress.length).toBeGreaterThan(10);
    expect(stateOf(projection, 'spend')).toMatchObject({ version: 2, state: 'live' });
    const rebuilt = await dump(bench.pool);
    const { rows } = await bench.pool.query('SELECT DISTINCT version FROM attempts');
    expect(rows).toEqual([{ version: 2 }]);
    await bench.clear();
    expect(rebuilt).toEqual(await reference(ledger));
  });

  it('leaves the served rows as they are where it fails, and goes on from there', async () => {
    const ledger = busyLedger(20);
    const projection = bench.process(ledger);
    projection.follow('main');
    await seen(projection, ledger);
    const before = await dump(bench.pool);
    const model = fragile(spendModel);
    const request = { ledger: 'main', model, source: ledger, pool: bench.pool, batchSize: 10, resume: true };
    let batches = 0;
    const onProgress = (): void => {
      batches += 1;
      model.broken = batches === 3;
    };
    await expect(rebuild({ ...request, onProgress })).rejects.toThrow('out of order');
    expect(await dump(bench.pool)).toEqual(before);
    model.broken = false;
    const resumed: number[] = [];
    await rebuild({ ...request, onProgress: ({ position }) => resumed.push(position) });
    expect(resumed[0]).toBe(19);
    expect(await dump(bench.pool)).toEqual(before);
    const { rows } = await bench.pool.query(
      'SELECT model, version, role FROM read_model_checkpoints ORDER BY 1, 2',
    );
    expect(rows).toContainEqual({ model: 'spend', version: 2, role: 'active' });
    expect(rows).toHaveLength(4);
  });

  it('begins by itself when the code of a model is newer than its rows', async () => {
    const ledger = busyLedger(20);
    const first = bench.process(ledger);
    first.follow('main');
    await seen(first, ledger);
    const before = await dump(bench.pool);
    await first.stop();
    const newer: ReadModel = { ...spendModel, shape: 2 };
    const second = bench.process(ledger, { models: withModel(newer), batchSize: 10 });
    second.follow('main');
    await seen(second, ledger);
    await until(() => stateOf(second, 'spend')?.version === 2, 'the new rows are served');
    expect(await dump(bench.pool)).toEqual(before);
    await until(() => stateOf(second, 'spend')?.rebuilding === undefined, 'the rebuild is over');
    // An older program follows, but does not write into rows it does not understand.
    const older = bench.process(ledger);
    older.follow('main');
    await until(() => stateOf(older, 'spend')?.state === 'superseded', 'the older program steps back');
  });

  it('is not disturbed by another rebuild of the same model', async () => {
    const ledger = busyLedger(30);
    const projection = bench.process(ledger);
    projection.follow('main');
    await seen(projection, ledger);
    const before = await dump(bench.pool);
    const request = { ledger: 'main', model: spendModel, source: ledger, pool: bench.pool, batchSize: 5 };
    const results = await Promise.allSettled([rebuild(request), rebuild(request)]);
    expect(results.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThanOrEqual(1);
    expect(await dump(bench.pool)).toEqual(before);
  });
});

describe('several ledgers', () => {
  it('share a connection and stay apart', async () => {
    const [main, other] = [busyLedger(3), new ScriptedLedger('other')];
    const opened: LedgerEvent[] = [{ type: 'LedgerOpened', data: { settings: main.state.settings } }];
    other.record(opened);
    const both: EventSource = {
      recent: () => undefined,
      read: (ledger, from, max) => (ledger === 'main' ? main : other).read(ledger, from, max),
      head: (ledger) => (ledger === 'main' ? main : other).head(),
      onNew: () => () => undefined,
    };
    const projection = bench.process(both);
    projection.follow('main');
    projection.follow('other');
    await seen(projection, main);
    expect(await projection.waitFor('other', 0, 10_000)).toBe('seen');
    expect((await dump(bench.pool, 'other'))['attempts']).toEqual([]);
    expect(projection.status().map(({ ledger }) => ledger)).toEqual(['main', 'other']);
    await projection.unfollow('other');
    expect(projection.status().map(({ ledger }) => ledger)).toEqual(['main']);
  });
});
