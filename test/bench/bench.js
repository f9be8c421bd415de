'use strict';
// `npm run bench`: checks per second over HTTP, beside a no-op endpoint of the same server and a straightforward
// row-lock implementation in the same PostgreSQL, in one run. Only the ratios mean anything: machines differ.
const { fork } = require('node:child_process');
const { mkdtempSync, rmSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const autocannon = require('autocannon');

const CONNECTIONS = Number(process.env.BENCH_CONNECTIONS ?? 64);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 6);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 2);

const body = (id) =>
  JSON.stringify({
    requestId: id,
    account: { provider: 'anthropic', fingerprint: 'a1'.repeat(32) },
    model: 'claude-haiku-4-5',
    workload: 'chat',
    subject: `visitor-${id.length % 7}`,
    estimate: { inputTokens: 1_000 },
  });

let unique = 0;

async function load(url) {
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    duration: SECONDS,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    setupClient: (client) => {
      client.setBody(body(`b-${(unique += 1)}`));
      client.on('response', () => client.setBody(body(`b-${(unique += 1)}`)));
    },
  });
  if (result.non2xx > 0 || result.errors > 0) {
    throw new Error(`${url}: ${result.non2xx} answers were not 2xx, ${result.errors} errors`);
  }
  return { rate: result.requests.average, p50: result.latency.p50, p99: result.latency.p99 };
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

async function main() {
  const dataDir = mkdtempSync(join(tmpdir(), 'spend-ledger-bench-'));
  const server = fork(join(__dirname, 'server.js'), {
    env: { ...process.env, DATA_DIR: dataDir },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ended = new Promise((resolve) => server.once('exit', resolve));
  try {
    const { url, rowLockUrl } = await new Promise((resolve, reject) => {
      server.once('message', resolve);
      server.once('exit', (code) => reject(new Error(`the server ended (${code})`)));
    });
    const contenders = [
      ['no-op of the same server', `${url}/bench/no-op`],
      ['spend ledger: check-budget', `${url}/v1/ledgers/main/check-budget`],
      ['row lock in the same PostgreSQL', rowLockUrl],
    ];
    const runs = new Map(contenders.map(([name]) => [name, []]));
    for (let round = 0; round <= ROUNDS; round += 1) {
      // Round 0 only warms up.
      for (const [name, target] of contenders) {
        const measured = await load(target);
        if (round > 0) runs.get(name).push(measured);
      }
    }
    print(contenders.map(([name]) => [name, runs.get(name)]));
  } finally {
    server.kill('SIGTERM');
    await ended;
    rmSync(dataDir, { recursive: true, force: true });
  }
}

function print(rows) {
  const rate = (name) => median(rows.find(([other]) => other.startsWith(name))[1].map((run) => run.rate));
  console.log(
    `\n${CONNECTIONS} connections, ${SECONDS} s a run, median of ${ROUNDS}; load generator, server and PostgreSQL share the machine\n`,
  );
  console.log('| | per second | × no-op | × row lock | p50 ms | p99 ms |');
  console.log('|---|---|---|---|---|---|');
  for (const [name, runs] of rows) {
    const own = median(runs.map((run) => run.rate));
    const cells = [
      name,
      Math.round(own),
      (own / rate('no-op')).toFixed(2),
      (own / rate('row lock')).toFixed(1),
      median(runs.map((run) => run.p50)),
      median(runs.map((run) => run.p99)),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
