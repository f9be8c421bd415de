import { createHash } from 'node:crypto';
import type { Bucket, BudgetPlace, OpeningBalance, Window } from '../../domain/budget';
import { parseMoney } from '../../domain/money';
import { keyOfWindow } from '../../domain/windows';
import { Columns } from '../columns';
import type { Batch, Sql } from '../read-model';

/** The part that is the whole bucket; set-asides have their index. */
export const WHOLE = -1;

interface BucketDelta {
  readonly budget: string;
  readonly generation: number;
  readonly window_key: number;
  readonly bucket_key: string;
  readonly part: number;
  readonly window_span: Window;
  readonly bucket: Bucket | undefined;
  charged: bigint;
  held: bigint;
}

/** Longer than any key of ordinary names; an index entry must stay below 2,700 bytes. */
const PLAIN_KEY_LENGTH = 256;

/** A bucket's key as text: its values by sorted dimension. ('' without `each`; long ones are cut and hashed.) */
export function bucketKeyText(bucket: Bucket | undefined): string {
  if (!bucket) return '';
  const key = JSON.stringify(
    Object.keys(bucket)
      .sort()
      .map((dimension) => bucket[dimension] ?? null),
  );
  if (key.length <= PLAIN_KEY_LENGTH) return key;
  return key.slice(0, PLAIN_KEY_LENGTH) + createHash('sha256').update(key).digest('hex');
}

const COLUMNS = new Columns([
  ['budget', 'text'],
  ['generation', 'integer'],
  ['window_key', 'bigint'],
  ['bucket_key', 'text'],
  ['part', 'smallint'],
  ['window_span', 'jsonb'],
  ['bucket', 'jsonb'],
  ['charged', 'bigint'],
  ['held', 'bigint'],
]);
const KEY = 'budget, generation, window_key, bucket_key, part';
const UPSERT = `INSERT INTO budget_buckets AS b (ledger, version, ${COLUMNS.names})
  SELECT $1, $2, row.* FROM ${COLUMNS.rowset('row', KEY)}
  ON CONFLICT (ledger, version, ${KEY}) DO UPDATE SET charged = b.charged + excluded.charged,
    held = b.held + excluded.held, window_span = excluded.window_span`;

/** What a batch adds to buckets, a row a part of a bucket; and which budgets' buckets begin anew. */
export class BucketDeltas {
  private readonly deltas = new Map<string, Map<string, BucketDelta>>();
  private readonly emptied = new Set<string>();

  /** Adds to the bucket, and to its set-aside where the place names one. */
  add(place: BudgetPlace, charged: bigint, held: bigint): void {
    this.part(place, WHOLE, charged, held);
    if (place.setAside !== undefined) this.part(place, place.setAside, charged, held);
  }

  /** Forgets every bucket of the budget, stored or of this batch. */
  empty(budget: string): void {
    this.deltas.delete(budget);
    this.emptied.add(budget);
  }

  /** What history already counts in a budget's bucket when it is defined or recounted. */
  open(budget: string, generation: number, balance: OpeningBalance): void {
    const place = { id: budget, generation, window: balance.window, bucket: balance.bucket };
    this.part(place, WHOLE, parseMoney(balance.charged), parseMoney(balance.held));
    for (const { index, charged, held } of balance.setAsides ?? []) {
      this.part(place, index, parseMoney(charged), parseMoney(held));
    }
  }

  async write(sql: Sql, { ledger, version }: Batch): Promise<void> {
    if (this.emptied.size > 0) {
      const text =
        'DELETE FROM budget_buckets WHERE ledger = $1 AND version = $2 AND budget = ANY ($3::text[])';
      await sql.query(text, [ledger, version, [...this.emptied]]);
    }
    const rows = [...this.deltas.values()].flatMap((parts) => [...parts.values()]);
    if (rows.length === 0) return;
    await sql.query({
      name: 'budget-buckets',
      text: UPSERT,
      values: [ledger, version, COLUMNS.parameter(rows)],
    });
  }

  private part(place: BudgetPlace, part: number, charged: bigint, held: bigint): void {
    const { id, generation, window, bucket } = place;
    let ofBudget = this.deltas.get(id);
    if (!ofBudget) {
      ofBudget = new Map();
      this.deltas.set(id, ofBudget);
    }
    const windowKey = keyOfWindow(window);
    const bucketKey = bucketKeyText(bucket);
    const key = `${String(windowKey)} ${String(part)} ${bucketKey}`;
    const known = ofBudget.get(key);
    if (known) {
      known.charged += charged;
      known.held += held;
      return;
    }
    const names = { budget: id, generation, window_key: windowKey, bucket_key: bucketKey, part };
    ofBudget.set(key, { ...names, window_span: window, bucket, charged, held });
  }
}
