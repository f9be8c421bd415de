'use strict';
// The service as it is, with a no-op route on the same server and a row-lock rival in the same PostgreSQL.
const fastify = require('fastify');
const pg = require('pg');
const { pino } = require('pino');
const { bootService } = require('../../dist/boot');
const { loadConfig } = require('../../dist/config/config');

const CONNECTIONS = 8;

/** What teams build first: lock the budget's row, add, insert, commit. */
async function rowLock(pool) {
  await pool.query(
    'CREATE TABLE bench_budget (id text PRIMARY KEY, spent bigint NOT NULL, cap bigint NOT NULL)',
  );
  await pool.query(
    'CREATE TABLE bench_reservation (id text PRIMARY KEY, amount bigint NOT NULL, at timestamptz NOT NULL DEFAULT now())',
  );
  await pool.query("INSERT INTO bench_budget VALUES ('all', 0, 9000000000000000)");
  const server = fastify();
  server.post('/check', async (request, reply) => {
    const amount = 21_480_000;
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      const { rows } = await client.query({
        name: 'lock',
        text: "SELECT spent, cap FROM bench_budget WHERE id = 'all' FOR UPDATE",
      });
      if (Number(rows[0].spent) + amount > Number(rows[0].cap)) {
        await client.query('ROLLBACK');
        return reply.code(402).send({});
      }
      await client.query({
        name: 'add',
        text: "UPDATE bench_budget SET spent = spent + $1 WHERE id = 'all'",
        values: [amount],
      });
      await client.query({
        name: 'insert',
        text: 'INSERT INTO bench_reservation (id, amount) VALUES ($1, $2)',
        values: [request.body.requestId, amount],
      });
      await client.query('COMMIT');
      return { decision: 'allowed' };
    } finally {
      client.release();
    }
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  return { server, url: `http://127.0.0.1:${server.server.address().port}/check` };
}

async function main() {
  const config = loadConfig({
    DATA_DIR: process.env.DATA_DIR,
    HOST: '127.0.0.1',
    PORT: '0',
    AUTH: 'off',
    LOG_FORMAT: 'json',
    LOG_LEVEL: 'error',
  });
  const service = await bootService(config, pino({ level: 'error' }), (app) => {
    app
      .getHttpAdapter()
      .getInstance()
      .post('/bench/no-op', (request, reply) =>
        reply.send({ decision: 'allowed', requestId: request.body.requestId }),
      );
  });
  const put = (path, body) =>
    fetch(`${service.url}/v1/ledgers/main/${path}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  await put('budgets/all', { match: {}, window: 'day', limit: '1000000', thresholds: [] });
  const pool = new pg.Pool({ connectionString: service.databaseUrl, max: CONNECTIONS });
  const rival = await rowLock(pool);
  process.send({ url: service.url, rowLockUrl: rival.url });
  process.once('SIGTERM', async () => {
    await rival.server.close();
    await pool.end();
    await service.stop();
    process.exit(0);
  });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
