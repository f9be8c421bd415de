import { DEFAULT_SETTINGS } from '../../domain/settings';
import type { Batch, Memory, ReadModel, Sql } from '../read-model';
import { insertAttempts, readCharges, updateAttempts } from './attempt-table';
import { SpendFold, chargesNamed } from './spend-fold';
import type { OpenEstimate, SpendMemory } from './spend-fold';

/**
 * One row per attempt, and the cube of spend by day, provider, account, model and workload. They are one model because a
 * correction must know the usage it replaces, and that stands in the attempt's row.
 */
export const spendModel: ReadModel = {
  name: 'spend',
  shape: 1,
  tables: ['attempts', 'spend_days'],
  apply: async (sql: Sql, batch: Batch): Promise<Memory> => {
    const charges = await readCharges(sql, batch, chargesNamed(batch.events));
    const fold = new SpendFold(memoryOf(batch.memory), charges);
    for (const event of batch.events) fold.add(event);
    await insertAttempts(sql, batch, [...fold.inserted.values()]);
    await updateAttempts(
      sql,
      batch,
      [...fold.patched.values()].sort((a, b) => a.revision - b.revision),
    );
    await fold.days.write(sql, batch);
    return { ...fold.memory };
  },
};

function memoryOf(memory: Memory): SpendMemory {
  const { timezone, estimates } = memory;
  return {
    timezone: typeof timezone === 'string' ? timezone : DEFAULT_SETTINGS.timezone,
    // Written by this model alone, so its shape is known.
    estimates: Array.isArray(estimates) ? (estimates as OpenEstimate[]) : [],
  };
}
