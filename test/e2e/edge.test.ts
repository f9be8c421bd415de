import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { until } from '../support/until';
import { ACCOUNT, RunningService, check, createTestDatabase } from './service';
import type { TestDatabase } from './service';

/** Bytes as they are, on a connection of their own; everything that came back. */
function rawCall(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = net.connect(Number(port), hostname, () => socket.write(text));
    socket.on('data', (part) => (answer += part.toString('utf8')));
    socket.once('close', () => {
      resolve(answer);
    });
    socket.once('error', reject);
  });
}

describe('the edge', () => {
  const SECRET = 'sk-ant-api03-veryverysecret';
  const PATH = '/v1/ledgers/main';
  let database: TestDatabase;
  let service: RunningService;

  beforeAll(async () => {
    database = await createTestDatabase();
    service = await RunningService.start(database, { LOG_LEVEL: 'trace' });
  });
  afterAll(async () => {
    await service.stop();
    await database.drop();
  });

  it.each<[string, string, string, unknown, number]>([
    ['a ledger', 'POST', `/v1/ledgers/${SECRET}/check-budget`, check('r'), 404],
    ['a ledger that is read', 'GET', `/v1/ledgers/${SECRET}/budgets`, undefined, 404],
    ['a reservation', 'POST', `${PATH}/reservations/${SECRET}/release`, undefined, 404],
    [
      'a reservation in a body',
      'POST',
      `${PATH}/record-usage`,
      { reservationId: SECRET, outcome: 'failed' },
      404,
    ],
    [
      'a charge',
      'POST',
      `${PATH}/charges/${SECRET}/corrections`,
      { correctionId: 'c', amount: '1', reason: 'r' },
      404,
    ],
    ['a budget', 'DELETE', `${PATH}/budgets/${SECRET}`, undefined, 404],
    ['a price', 'DELETE', `${PATH}/prices/anthropic/${SECRET}`, undefined, 404],
    ['a request', 'GET', `${PATH}/requests/${SECRET}`, undefined, 404],
    ['a path that cannot be read', 'GET', `${PATH}/prices/%ZZ${SECRET}`, undefined, 400],
    ['a path that leads nowhere', 'GET', `/${SECRET}`, undefined, 404],
    ['a field of a query', 'GET', `${PATH}/headroom?${SECRET}=1`, undefined, 400],
    ['a value of a query', 'GET', `${PATH}/headroom?account=${SECRET}`, undefined, 400],
    [
      'a tag’s name',
      'POST',
      `${PATH}/check-budget`,
      check('r', 1, { tags: { [SECRET.toUpperCase()]: 'x' } }),
      400,
    ],
    ['a usage class', 'POST', `${PATH}/record-usage`, { usage: { [SECRET]: 1 } }, 400],
  ])('a raw key in place of %s is not said back', async (_name, method, path, body, status) => {
    const reply = await service.call(method, path, body);
    expect(reply.status).toBe(status);
    expect(reply.headers.get('content-type')).toContain('application/problem+json');
    expect(JSON.stringify(reply.body).toLowerCase()).not.toContain(SECRET);
    expect(service.output.toLowerCase()).not.toContain(SECRET);
  });

  it('a field that could be a key of any provider is not named', async () => {
    const field = 'AIzaSyD9aB3cD4eF5gH6iJ7kL8mN9oP0qR1sT2u';
    const { body } = await service.post('check-budget', { ...check('r'), [field]: 1, maxTokens: 2 });
    expect(body.faults.map(({ path }: { path: string }) => path).sort()).toEqual([
      '(unknown field)',
      'maxTokens',
    ]);
  });

  it('faults of the path and of the body are told together', async () => {
    const { body } = await service.put('budgets/Day!', { limit: '-5', window: 'day', extra: 1 });
    expect(body.faults.map(({ path }: { path: string }) => path)).toEqual(['id', 'limit', 'extra']);
  });

  it.each(['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=x'])(
    'a body of type %s, which a page may send unasked, is 415',
    async (type) => {
      const reply = await service.post('reservations/rsv_1_000000000000/release', 'a=b', {
        'content-type': type,
      });
      expect(reply).toMatchObject({ status: 415, body: { code: 'unsupported_media_type' } });
    },
  );

  it('an empty body counts as none, whatever type it is said to have', async () => {
    const json = { 'content-type': 'application/json' };
    const released = await service.post('reservations/rsv_1_000000000000/release', '', json);
    expect(released.body.code).toBe('reservation_not_found');
    const retired = await service.call('DELETE', 'budgets/none', undefined, json);
    expect(retired.body.code).toBe('budget_not_found');
  });

  it.each([
    ['error', { error: { status: 500, body: '@' } }],
    ['providerUsage', { providerUsage: { input_tokens: 1, more: '@' } }],
  ])('%s nested without end is 400', async (path, rest) => {
    const deep = '['.repeat(50_000) + ']'.repeat(50_000);
    const record = JSON.stringify({ reservationId: 'rsv_1_000000000000', outcome: 'failed', ...rest });
    const { body } = await service.post('record-usage', record.replace('"@"', deep));
    expect(body.faults).toEqual([{ path, message: 'is nested more than 32 deep' }]);
  });

  it.each(['9999-12-31T23:59:59-12:00', '1969-12-31T23:59:59Z', '0000-01-01T00:00:00Z'])(
    'the far time %s is 400',
    async (time) => {
      const record = {
        usageId: 'u',
        account: ACCOUNT,
        model: 'claude-haiku-4-5',
        outcome: 'succeeded',
        usage: {},
      };
      const { body } = await service.post('record-usage', { ...record, occurredAt: time });
      expect(body.faults).toEqual([
        { path: 'occurredAt', message: 'is not between the years 1970 and 9999' },
      ]);
    },
  );

  it('who is still sending a body that is too large reads the answer all the same', async () => {
    const statuses = await Promise.all(
      Array.from(
        { length: 8 },
        () =>
          new Promise((resolve, reject) => {
            const request = http.request(`${service.url}${PATH}/check-budget`, {
              method: 'POST',
              headers: { 'content-type': 'application/json' },
            });
            request.once('error', reject).once('response', (response) => {
              response.resume().once('end', () => {
                resolve(response.statusCode);
              });
            });
            for (let sent = 0; sent < 80; sent += 1) request.write('x'.repeat(100_000));
            request.end();
          }),
      ),
    );
    expect(statuses).toEqual(Array.from({ length: 8 }, () => 413));
  });

  it('what is no HTTP is a problem too', async () => {
    const garbage = await rawCall(service.url, `${SECRET} nonsense\r\n\r\n`);
    expect(garbage).toMatch(/^HTTP\/1.1 400 Bad Request\r\ncontent-type: application\/problem\+json/);
    expect(garbage).not.toContain(SECRET);
    const large = await rawCall(
      service.url,
      `GET /livez HTTP/1.1\r\nhost: localhost\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`,
    );
    expect(large).toMatch(/^HTTP\/1.1 431 [\s\S]*"code":"headers_too_large"/);
  });

  it.each([
    ['a name of somebody’s own that points here', 'evil.example', ''],
    ['a name of somebody’s own, with the port', 'evil.example:80', ''],
    ['a page of another origin', '127.0.0.1', 'origin: https://evil.example\r\n'],
    ['a page of no origin', '127.0.0.1', 'origin: null\r\n'],
  ])('without keys %s is 403', async (_name, host, header) => {
    const head = `host: ${host}\r\n${header}content-length: 0\r\nconnection: close\r\n\r\n`;
    const path = `${PATH}/reservations/rsv_1_000000000000/release`;
    expect(await rawCall(service.url, `POST ${path} HTTP/1.1\r\n${head}`)).toMatch(
      /^HTTP\/1.1 403 [\s\S]*"code":"forbidden_host"/,
    );
  });

  it('the document names no route that is not there', async () => {
    const { body } = await service.get('/openapi.json');
    const missing: string[] = [];
    for (const [path, methods] of Object.entries(body.paths as Record<string, object>)) {
      for (const method of Object.keys(methods)) {
        const filled = path.replace('{ledger}', 'nowhere').replaceAll(/\{\w+\}/g, 'x');
        const reply = await service.call(method.toUpperCase(), filled);
        if (reply.body.code === 'not_found') missing.push(`${method} ${path}`);
      }
    }
    expect(missing).toEqual([]);
  });
});

describe('the end of a service', () => {
  it('SIGTERM ends live streams and then the process', async () => {
    const database = await createTestDatabase();
    const service = await RunningService.start(database);
    const answer = await fetch(`${service.url}/v1/ledgers/main/events`, {
      headers: { accept: 'text/event-stream' },
    });
    let heard = '';
    const ended = (async () => {
      for await (const part of answer.body ?? []) heard += Buffer.from(part as Uint8Array).toString('utf8');
    })();
    await until(() => heard.includes('event: LedgerOpened'), 'the stream tells what is there');
    expect(await service.stop()).toBe(0);
    await ended;
    await database.drop();
  });
});

describe('the admin key', () => {
  const allowed = async (service: RunningService, key: string, scheme = 'Bearer') =>
    (await service.get('events', { authorization: `${scheme} ${key}` })).status;

  it('lies in its folder, for its owner only; the scheme is read in any case', async () => {
    const database = await createTestDatabase();
    const service = await RunningService.start(database, { AUTH: 'keys' });
    const file = join(service.dataDir, 'admin.key');
    const key = readFileSync(file, 'utf8').trim();
    expect(key).toMatch(/^slk_[\w-]{43}$/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect([await allowed(service, key), await allowed(service, key, 'bearer')]).toEqual([200, 200]);
    const refused = await service.get('events', { authorization: `Bearer ${key.slice(0, -1)}` });
    expect(refused).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    expect(refused.headers.get('www-authenticate')).toBe('Bearer');
    await service.stop();
    await database.drop();
  });

  it('a start without its folder works, and says that the key is not there', async () => {
    const database = await createTestDatabase();
    const first = await RunningService.start(database, { AUTH: 'keys' });
    const key = readFileSync(join(first.dataDir, 'admin.key'), 'utf8').trim();
    await first.stop();
    const second = await RunningService.start(database, { AUTH: 'keys' });
    expect(existsSync(join(second.dataDir, 'admin.key'))).toBe(false);
    await until(() => second.output.includes('is not in'), 'it says so');
    expect(await allowed(second, key)).toBe(200);
    await second.stop();
    await database.drop();
  });

  it('the key of a folder that is kept stays the key of a new database', async () => {
    const [one, two] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    const first = await RunningService.start(one, { AUTH: 'keys' });
    const key = readFileSync(join(first.dataDir, 'admin.key'), 'utf8').trim();
    const folder = `${first.dataDir}-kept`;
    await first.stop();
    const second = await RunningService.start(two, { AUTH: 'keys', DATA_DIR: keptFolder(folder, key) });
    await until(() => second.output.includes('the admin key is the one in'), 'it says where');
    expect(second.output).not.toContain(key);
    expect(await allowed(second, key)).toBe(200);
    await second.stop();
    rmSync(folder, { recursive: true });
    await Promise.all([one.drop(), two.drop()]);
  });

  it('a port that is taken ends the start in one line', async () => {
    const database = await createTestDatabase();
    const server = net.createServer().listen(0, '127.0.0.1');
    await new Promise((ready) => server.once('listening', ready));
    const { port } = server.address() as net.AddressInfo;
    await expect(RunningService.start(database, { PORT: String(port) })).rejects.toThrow(
      /address already in use 127\.0\.0\.1:\d+: set PORT/,
    );
    await new Promise((closed) => server.close(closed));
    await database.drop();
  });
});

function keptFolder(folder: string, key: string): string {
  mkdirSync(folder);
  writeFileSync(join(folder, 'admin.key'), `${key}\n`, { mode: 0o600 });
  return folder;
}
