import pg from 'pg';
import { createTestDatabase } from '../support/database';

describe('the test database', () => {
  it('is migrated and belongs to the test alone', async () => {
    const [one, other] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    expect(one.url).not.toBe(other.url);
    const client = new pg.Client({ connectionString: one.url });
    await client.connect();
    const { rows } = await client.query("SELECT to_regclass('spend_ledger.migrations')::text AS migrations");
    expect(rows).toEqual([{ migrations: 'spend_ledger.migrations' }]);
    await client.end();
    await Promise.all([one.drop(), other.drop()]);
  });
});
