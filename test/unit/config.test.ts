import { ConfigError, isLoopback, loadConfig, peerUrlOf, type Environment } from '../../src/config/config';

function faultsOf(env: Environment): readonly string[] {
  try {
    loadConfig(env, false, '/srv');
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}

describe('the configuration', () => {
  it('needs no variable at all', () => {
    expect(loadConfig({}, false, '/srv')).toEqual({
      host: '127.0.0.1',
      port: 8080,
      databaseUrl: undefined,
      databaseSchema: 'spend_ledger',
      databasePool: 8,
      dailyLimit: undefined,
      dataDir: '/srv/.data',
      policyFile: undefined,
      auth: 'keys',
      peerUrl: undefined,
      logLevel: 'info',
      logFormat: 'json',
    });
  });

  it('takes every variable', () => {
    const config = loadConfig(
      {
        HOST: '::1',
        PORT: '0',
        DATABASE_URL: 'postgresql://me:secret@db.example:5433/ledger?sslmode=require',
        DATABASE_SCHEMA: 'money',
        DATABASE_POOL: '20',
        DAILY_LIMIT: '5.00',
        DATA_DIR: 'state',
        POLICY_FILE: '/etc/policy.yaml',
        AUTH: 'off',
        PEER_URL: 'http://10.0.0.7:8080/',
        LOG_LEVEL: 'debug',
        LOG_FORMAT: 'pretty',
      },
      false,
      '/srv',
    );
    expect(config).toEqual({
      host: '::1',
      port: 0,
      databaseUrl: 'postgresql://me:secret@db.example:5433/ledger?sslmode=require',
      databaseSchema: 'money',
      databasePool: 20,
      dailyLimit: 5_000_000_000n,
      dataDir: '/srv/state',
      policyFile: '/etc/policy.yaml',
      auth: 'off',
      peerUrl: 'http://10.0.0.7:8080',
      logLevel: 'debug',
      logFormat: 'pretty',
    });
  });

  it('takes an empty variable as unset, as compose files write them', () => {
    expect(
      loadConfig({ DATABASE_URL: '', EVENT_STORE_URL: '', AUTH: '', PORT: '' }, false, '/srv').port,
    ).toBe(8080);
  });

  it('names every fault at once', () => {
    expect(
      faultsOf({
        HOST: 'a b',
        PORT: '70000',
        DATABASE_URL: 'mysql://x',
        DATABASE_SCHEMA: 'My-Schema',
        DATABASE_POOL: '2',
        DAILY_LIMIT: '-1',
        AUTH: 'no',
        PEER_URL: '10.0.0.7',
        LOG_LEVEL: 'loud',
        LOG_FORMAT: 'xml',
      }).map((fault) => fault.split(' ')[0]),
    ).toEqual([
      'HOST',
      'PORT',
      'DATABASE_URL',
      'DATABASE_SCHEMA',
      'DATABASE_POOL',
      'DAILY_LIMIT',
      'AUTH',
      'PEER_URL',
      'LOG_LEVEL',
      'LOG_FORMAT',
    ]);
  });

  it('never repeats the password of a wrong DATABASE_URL', () => {
    const message = new ConfigError(faultsOf({ DATABASE_URL: 'postgers://me:hunter2@db/x' })).message;
    expect(message).toContain('DATABASE_URL must be a URL such as postgres://');
    expect(message).not.toContain('hunter2');
  });

  it.each(['esdb://node:2113', 'kurrentdb://node:2113?tls=false'])(
    'says that %s is not supported yet',
    (url) => {
      expect(faultsOf({ EVENT_STORE_URL: url })).toEqual([
        'EVENT_STORE_URL is not supported by this version: the log is kept in PostgreSQL; leave it unset',
      ]);
    },
  );

  it.each(['pg_money', 'information_schema', 'public', '1st', 'x; DROP TABLE y', '"q"', 'a'.repeat(64)])(
    'refuses the schema name %s',
    (name) => {
      expect(faultsOf({ DATABASE_SCHEMA: name })[0]).toMatch(/^DATABASE_SCHEMA must/);
    },
  );

  it('lets AUTH be off only where nobody else can reach the service', () => {
    expect(faultsOf({ AUTH: 'off', HOST: 'localhost' })).toEqual([]);
    for (const host of ['0.0.0.0', '::', '10.0.0.7', 'ledger.internal']) {
      expect(faultsOf({ AUTH: 'off', HOST: host })).toEqual([
        'AUTH may be off only where HOST is a loopback address, such as 127.0.0.1',
      ]);
    }
  });

  it.each([
    ['127.0.0.1', true],
    ['127.8.8.8', true],
    ['localhost', true],
    ['::1', true],
    ['128.0.0.1', false],
    ['127.0.0.1.example.org', false],
  ])('%s is loopback: %s', (host, loopback) => {
    expect(isLoopback(host)).toBe(loopback);
  });

  it.each(['1e3', '5,00', '1000001', 'five'])('refuses the daily limit %s', (limit) => {
    expect(faultsOf({ DAILY_LIMIT: limit })).toHaveLength(1);
  });

  it('takes a daily limit of zero: it refuses everything', () => {
    expect(loadConfig({ DAILY_LIMIT: '0' }, false, '/srv').dailyLimit).toBe(0n);
  });

  it('writes pretty logs on a terminal', () => {
    expect(loadConfig({}, true, '/srv').logFormat).toBe('pretty');
  });

  it('is reached by its peers where it listens, unless told otherwise', () => {
    expect(peerUrlOf(loadConfig({ HOST: '::1', PORT: '0' }, false, '/srv'), 41_234)).toBe(
      'http://[::1]:41234',
    );
    expect(peerUrlOf(loadConfig({ PEER_URL: 'https://one.internal//' }, false, '/srv'), 1)).toBe(
      'https://one.internal',
    );
  });
});
