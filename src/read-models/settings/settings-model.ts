import type { Recorded } from '../../domain/events';
import type { Price } from '../../domain/prices';
import type { Settings } from '../../domain/settings';
import type { Batch, Memory, ReadModel, Sql } from '../read-model';

interface PriceRow {
  readonly price: Price;
  readonly at: string;
  readonly revision: number;
}

interface Changes {
  settings: { settings: Settings; at: string; revision: number } | undefined;
  readonly listed: Map<string, PriceRow>;
  /** By provider and model; undefined: retired. */
  readonly overrides: Map<string, { provider: string; model: string; set: PriceRow | undefined }>;
}

/** The ledger's settings as they stand, the prices it has listed, and the overrides in force. */
export const settingsModel: ReadModel = {
  name: 'settings',
  shape: 1,
  tables: ['ledger_settings', 'listed_prices', 'price_overrides'],
  apply: async (sql: Sql, batch: Batch): Promise<Memory> => {
    const changes: Changes = { settings: undefined, listed: new Map(), overrides: new Map() };
    for (const event of batch.events) note(changes, event);
    await write(sql, batch, changes);
    return batch.memory;
  },
};

function note(changes: Changes, event: Recorded): void {
  const { at, revision } = event;
  switch (event.type) {
    case 'LedgerOpened':
    case 'SettingsChanged':
      changes.settings = { settings: event.data.settings, at, revision };
      return;
    case 'PriceListed':
      changes.listed.set(event.data.price.priceId, { price: event.data.price, at, revision });
      return;
    case 'PriceSet': {
      const { price } = event.data;
      const set = { price, at, revision };
      changes.overrides.set(keyOf(price), { provider: price.provider, model: price.model, set });
      return;
    }
    case 'PriceRetired': {
      const { provider, model } = event.data;
      changes.overrides.set(keyOf(event.data), { provider, model, set: undefined });
      return;
    }
    default:
  }
}

const keyOf = ({ provider, model }: { provider: string; model: string }): string =>
  JSON.stringify([provider, model]);

async function write(sql: Sql, { ledger, version }: Batch, changes: Changes): Promise<void> {
  const { settings, listed, overrides } = changes;
  if (settings) {
    await sql.query(
      `INSERT INTO ledger_settings (ledger, version, settings, opened_at, revision) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (ledger, version) DO UPDATE SET settings = excluded.settings, revision = excluded.revision`,
      [ledger, version, JSON.stringify(settings.settings), settings.at, settings.revision],
    );
  }
  if (listed.size > 0) {
    const rows = [...listed.values()];
    await sql.query(
      `INSERT INTO listed_prices (ledger, version, price_id, provider, model, price, listed_at, revision)
       SELECT $1, $2, row.* FROM unnest($3::text[], $4::text[], $5::text[], $6::jsonb[], $7::timestamptz[], $8::bigint[]) AS row
       ON CONFLICT (ledger, version, price_id) DO NOTHING`,
      [ledger, version, rows.map(({ price }) => price.priceId), ...columns(rows)],
    );
  }
  if (overrides.size === 0) return;
  const named = [...overrides.values()];
  await sql.query(
    `DELETE FROM price_overrides WHERE ledger = $1 AND version = $2
       AND (provider, model) IN (SELECT * FROM unnest($3::text[], $4::text[]))`,
    [ledger, version, named.map(({ provider }) => provider), named.map(({ model }) => model)],
  );
  const set = named.flatMap((each) => (each.set ? [each.set] : []));
  if (set.length === 0) return;
  await sql.query(
    `INSERT INTO price_overrides (ledger, version, provider, model, price, set_at, revision)
     SELECT $1, $2, row.* FROM unnest($3::text[], $4::text[], $5::jsonb[], $6::timestamptz[], $7::bigint[]) AS row`,
    [ledger, version, ...columns(set)],
  );
}

/** provider, model, price, at, revision */
function columns(rows: readonly PriceRow[]): unknown[][] {
  return [
    rows.map(({ price }) => price.provider),
    rows.map(({ price }) => price.model),
    rows.map(({ price }) => JSON.stringify(price)),
    rows.map(({ at }) => at),
    rows.map(({ revision }) => revision),
  ];
}
