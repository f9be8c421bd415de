import type pg from 'pg';
import type { Price } from '../../domain/prices';
import type { Settings } from '../../domain/settings';
import { activeVersion } from '../active-version';

export interface LedgerView {
  readonly ledger: string;
  readonly settings: Settings;
  readonly openedAt: string;
}

export interface PriceView {
  readonly price: Price;
  /** When it was listed (catalogue) or set (override), RFC 3339. */
  readonly since: string;
}

interface PriceRow {
  readonly price: Price;
  readonly since: Date;
}

const asView = ({ price, since }: PriceRow): PriceView => ({ price, since: since.toISOString() });

/** The ledger's settings and prices as they stand. */
export class SettingsQueries {
  constructor(private readonly pool: Pick<pg.Pool, 'query'>) {}

  /** Undefined where no such ledger was opened. */
  async settings(ledger: string): Promise<Settings | undefined> {
    const { rows } = await this.pool.query<{ settings: Settings }>(
      `SELECT settings FROM ledger_settings WHERE ledger = $1 AND version = ${activeVersion('settings')}`,
      [ledger],
    );
    return rows[0]?.settings;
  }

  /** Every ledger that was opened, by name. */
  async ledgers(): Promise<LedgerView[]> {
    const { rows } = await this.pool.query<{ ledger: string; settings: Settings; opened_at: Date }>(
      `SELECT s.ledger, s.settings, s.opened_at FROM ledger_settings s
        WHERE s.version = ${activeVersion('settings', 's.ledger')} ORDER BY s.ledger`,
    );
    return rows.map((row) => ({
      ledger: row.ledger,
      settings: row.settings,
      openedAt: row.opened_at.toISOString(),
    }));
  }

  /** Overrides in force, by provider and model. */
  async overrides(ledger: string): Promise<PriceView[]> {
    const { rows } = await this.pool.query<PriceRow>(
      `SELECT price, set_at AS since FROM price_overrides
        WHERE ledger = $1 AND version = ${activeVersion('settings')} ORDER BY provider, model`,
      [ledger],
    );
    return rows.map(asView);
  }

  /** Catalogue prices this ledger has used, newest last. */
  async listed(ledger: string): Promise<PriceView[]> {
    const { rows } = await this.pool.query<PriceRow>(
      `SELECT price, listed_at AS since FROM listed_prices
        WHERE ledger = $1 AND version = ${activeVersion('settings')} ORDER BY provider, model, revision`,
      [ledger],
    );
    return rows.map(asView);
  }
}
