#!/usr/bin/env node
import { SingleBar } from 'cli-progress';
import { Command } from 'commander';
import { ConfigError, loadConfig } from '../config/config';
import { PostgresEventStore } from '../event-store/postgres/postgres-event-store';
import { logSource } from '../log-source';
import { openConfiguredDatabase } from '../postgres/configured-database';
import { READ_MODELS } from '../read-models/read-models';
import { rebuild } from '../read-models/runner/rebuild';
import type { RebuildProgress } from '../read-models/runner/rebuild';

const quiet = { info: () => undefined, warn: (message: string) => process.stderr.write(`${message}\n`) };

/** Draws a rebuild on a terminal; elsewhere it says a line when it is done. */
class RebuildBar {
  private bar: SingleBar | undefined;

  show({ position, head, eventsPerSecond }: RebuildProgress): void {
    if (!process.stdout.isTTY) return;
    if (!this.bar) {
      this.bar = new SingleBar({ format: '{bar} {value}/{total} events  {rate}/s' });
      this.bar.start(head + 1, 0, { rate: 0 });
    }
    this.bar.setTotal(head + 1);
    this.bar.update(position + 1, { rate: Math.round(eventsPerSecond) });
  }

  stop(): void {
    this.bar?.stop();
  }
}

/** Rebuilds one read model beside the one that is served; the service, if one runs, goes on meanwhile. */
async function rebuildModel(name: string, ledger: string): Promise<void> {
  const model = READ_MODELS.find((candidate) => candidate.name === name);
  if (!model)
    throw new Error(`no read model ${name}; there are: ${READ_MODELS.map((known) => known.name).join(', ')}`);
  const opened = await openConfiguredDatabase(loadConfig(process.env), quiet);
  const { pool, schema } = opened.database;
  const store = new PostgresEventStore({ pool, connect: () => opened.database.connect(), schema });
  const bar = new RebuildBar();
  try {
    await rebuild({
      ledger,
      model,
      pool,
      source: logSource(store),
      onProgress: (progress) => {
        bar.show(progress);
      },
    });
    bar.stop();
    process.stdout.write(`read model ${name} of ledger ${ledger} is rebuilt and served\n`);
  } finally {
    bar.stop();
    await store.close();
    await opened.stop();
  }
}

const program = new Command('spend-ledger').description('Spend Ledger from the terminal');
program
  .command('rebuild')
  .description('rebuild a read model from the log, beside the one that is served')
  .argument('<model>', READ_MODELS.map(({ name }) => name).join(', '))
  .option('--ledger <id>', 'the ledger', 'main')
  .action((model: string, { ledger }: { ledger: string }) => rebuildModel(model, ledger));

program.parseAsync().catch((error: unknown) => {
  const message = error instanceof ConfigError || error instanceof Error ? error.message : String(error);
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
});
