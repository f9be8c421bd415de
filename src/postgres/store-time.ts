import type pg from 'pg';

const QUESTION = {
  name: 'store-time',
  text: 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms',
  query_timeout: 2_000,
};

/** PostgreSQL's clock, ms since epoch with fractions, at the moment it answers. */
export async function readStoreTime(queryable: Pick<pg.Pool, 'query'>): Promise<number> {
  const { rows } = await queryable.query<{ ms: number }>(QUESTION);
  const ms = rows[0]?.ms;
  if (ms === undefined) throw new Error('PostgreSQL told no time');
  return ms;
}
