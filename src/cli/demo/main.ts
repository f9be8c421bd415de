#!/usr/bin/env node
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { audit } from './audit';
import { LedgerApi } from './ledger-api';
import { race } from './race';
import { Report } from './report';
import { tellStory } from './story';
import { defaultTrace, readTrace, replay } from './trace';
import type { Trace } from './trace';

/** Starts the service as `npm start` would, on its embedded default, in a folder of its own. */
function startService(dataDir: string): { service: ChildProcess; url: Promise<string> } {
  const service = fork(resolve(__dirname, '../../main.js'), {
    env: {
      ...process.env,
      DATA_DIR: dataDir,
      AUTH: 'off',
      HOST: '127.0.0.1',
      PORT: process.env['PORT'] ?? '0',
      LOG_LEVEL: 'error',
      DATABASE_URL: '',
      POLICY_FILE: '',
      DAILY_LIMIT: '',
    },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const url = new Promise<string>((tell, fail) => {
    service.once('message', (message: { url: string }) => {
      tell(message.url);
    });
    service.once('exit', (code) => {
      fail(new Error(`the service ended before it listened (${code ?? 'killed'})`));
    });
  });
  return { service, url };
}

async function stopService(service: ChildProcess): Promise<void> {
  if (service.exitCode !== null || service.signalCode !== null) return;
  const ended = new Promise((tell) => service.once('exit', tell));
  service.kill('SIGTERM');
  await ended;
}

async function play(url: string, trace: Trace, report: Report): Promise<void> {
  const api = new LedgerApi(url, 256);
  try {
    await tellStory(api, report);
    await race(api, report);
    await audit(api, await replay(api, trace, report), report);
  } finally {
    api.close();
  }
}

async function main(): Promise<number> {
  const options = new Command('demo')
    .description('Plays the story, a race, a trace and an audit against a service of its own.')
    .option('--trace <file>', 'CSV with the columns TIMESTAMP, ContextTokens, GeneratedTokens')
    .option('--serve', 'keep the service up afterwards')
    .parse()
    .opts<{ trace?: string; serve?: boolean }>();
  const trace = options.trace === undefined ? defaultTrace() : readTrace(options.trace);
  const report = new Report();
  const dataDir = mkdtempSync(join(tmpdir(), 'spend-ledger-demo-'));
  report.line('Starting Spend Ledger with an embedded PostgreSQL …');
  const { service, url } = startService(dataDir);
  const interrupt = () => service.kill('SIGTERM');
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  try {
    const address = await url;
    report.line(`  listening on ${address}`);
    await play(address, trace, report);
    report.line('');
    report.line(
      report.failures === 0
        ? 'Everything came out as expected.'
        : `${report.failures} expectation(s) failed.`,
    );
    if (options.serve) {
      report.line(`Serving on ${address} (docs at ${address}/docs) until Ctrl-C; data in ${dataDir}`);
      await new Promise((tell) => service.once('exit', tell));
    }
  } finally {
    await stopService(service);
    rmSync(dataDir, { recursive: true, force: true });
  }
  return report.failures === 0 ? 0 : 1;
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(`demo failed: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  },
);
