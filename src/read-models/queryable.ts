import type pg from 'pg';

/** What a query needs of the pool. */
export type Queryable = Pick<pg.Pool, 'query'>;
