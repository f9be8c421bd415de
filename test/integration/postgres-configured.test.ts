import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { openConfiguredDatabase, withoutSecrets } from '../../src/postgres/configured-database';
import { createEmptyDatabase, createTestDatabase } from '../support/database';
import { RecordedLog } from '../support/recorded-log';
import { startProxy } from '../support/tcp-proxy';

function configFor(databaseUrl: string) {
  return { databaseUrl, databaseSchema: 'spend_ledger', databasePool: 8, dataDir: '/nowhere' };
}

describe('the configured database', () => {
  it('is migrated and ready, in a database that was empty', async () => {
    const empty = await createEmptyDatabase();
    const { database, embedded, stop } = await openConfiguredDatabase(
      configFor(empty.url),
      new RecordedLog(),
    );
    expect(embedded).toBeUndefined();
    expect((await database.pool.query("SELECT to_regclass('migrations')::text AS table")).rows).toEqual([
      { table: 'migrations' },
    ]);
    await stop();
    await empty.drop();
  });

  it('is an embedded server where no address is given, which ends with the service', async () => {
    const folder = await mkdtemp(path.join(await realpath(tmpdir()), 'spend-ledger-configured-'));
    await chmod(folder, 0o755);
    const config = {
      databaseUrl: undefined,
      databaseSchema: 'money',
      databasePool: 8,
      dataDir: path.join(folder, '.data'),
    };
    const { database, embedded, url, stop } = await openConfiguredDatabase(config, new RecordedLog(), [
      path.join(folder, 'shelter'),
    ]);
    expect(embedded).toMatchObject({ adopted: false, dataDir: path.join(folder, '.data', 'postgres') });
    expect((await database.pool.query('SELECT current_schema AS schema')).rows).toEqual([
      { schema: 'money' },
    ]);
    expect(database.pool.options.max).toBe(4); // eight less three dedicated, less the one that keeps the server
    await stop();
    const client = new pg.Client({ connectionString: url });
    await expect(client.connect()).rejects.toThrow('ECONNREFUSED');
    await rm(folder, { recursive: true });
  });

  it('says what is wrong with the address, without its password', async () => {
    const existing = await createTestDatabase();
    const url = new URL(existing.url);
    url.pathname = '/missing';
    const log = new RecordedLog();
    const failure = openConfiguredDatabase(configFor(url.href), log);
    await expect(failure).rejects.toThrow(
      `cannot connect to postgres://${url.host}/missing: database "missing" does not exist`,
    );
    await existing.drop();
  });

  it('refuses a database that cannot hold every character', async () => {
    const empty = await createEmptyDatabase("ENCODING 'SQL_ASCII'");
    await expect(openConfiguredDatabase(configFor(empty.url), new RecordedLog())).rejects.toThrow(
      'the database must be encoded in UTF8, not SQL_ASCII',
    );
    await empty.drop();
  });

  it('waits a moment for a server that starts together with the service', async () => {
    const empty = await createEmptyDatabase();
    const probe = createServer();
    await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
    const { port } = probe.address() as AddressInfo;
    await new Promise((resolve) => probe.close(resolve));
    const url = new URL(empty.url);
    const target = Number(url.port);
    url.port = String(port);
    const log = new RecordedLog();
    let proxy: { close(): Promise<void> } | undefined;
    const begun = openConfiguredDatabase(configFor(url.href), {
      info: () => undefined,
      warn: (message, fields) => {
        log.warn(message, fields);
        void startProxy(port, target).then((started) => (proxy = started));
      },
    });
    const { stop } = await begun;
    expect(log.messages()).toEqual([`waiting for PostgreSQL at ${withoutSecrets(url.href)}`]);
    await stop();
    await proxy?.close();
    await empty.drop();
  });
});
