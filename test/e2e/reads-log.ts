import { randomUUID } from 'node:crypto';
import { GENESIS_HASH, sealEvent } from '../../src/domain/sealing';
import type { SealedEvent } from '../../src/event-store/event-store';
import { PostgresEventStore } from '../../src/event-store/postgres/postgres-event-store';
import { openDatabase } from '../../src/postgres/pool';
import { PostgresWriterStorage } from '../../src/writer/storage';
import type { TestDatabase } from '../support/database';
import { quiet } from '../support/postgres-server';
import type { ScriptedLedger } from '../support/scripted-ledger';

/** A scripted ledger's events with real hashes, as the writer would have sealed them. */
export function sealed({ ledger, events }: ScriptedLedger): SealedEvent[] {
  let previousHash = GENESIS_HASH;
  return events.map((event, revision) => {
    const made = sealEvent({
      id: randomUUID(),
      event,
      schemaVersion: 1,
      ledger,
      revision,
      atMs: Date.parse(event.at),
      correlationId: 'scripted',
      causationId: 'scripted',
      actor: 'scripted',
      previousHash,
    });
    previousHash = made.hash;
    return made.sealed;
  });
}

/** Puts a scripted ledger into a database's log, before a service opens it. */
export async function storeLog({ url, schema }: TestDatabase, script: ScriptedLedger): Promise<void> {
  const database = openDatabase({ url, schema, poolSize: 4, applicationName: 'seed', log: quiet });
  const store = new PostgresEventStore({
    pool: database.pool,
    connect: () => database.connect(),
    schema,
  });
  await new PostgresWriterStorage(database.pool).registerLedger(script.ledger);
  await store.append(script.ledger, -1, sealed(script));
  await store.close();
  await database.close();
}
