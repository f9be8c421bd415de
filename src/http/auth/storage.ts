import type pg from 'pg';

export interface StoredKey {
  readonly id: string;
  readonly hash: Buffer;
}

/** The API keys, by their hashes. */
export class KeyStorage {
  constructor(private readonly pool: Pick<pg.Pool, 'query'>) {}

  async keys(): Promise<StoredKey[]> {
    const { rows } = await this.pool.query<{ id: string; key_hash: Buffer }>(
      'SELECT id, key_hash FROM api_keys ORDER BY id',
    );
    return rows.map(({ id, key_hash }) => ({ id, hash: key_hash }));
  }

  /** Whether this call stored it; false where a key of that id was there already. */
  async add(id: string, hash: Buffer, role: string): Promise<boolean> {
    const { rowCount } = await this.pool.query(
      'INSERT INTO api_keys (id, key_hash, role) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING',
      [id, hash, role],
    );
    return rowCount === 1;
  }
}
