import { decodeEvent } from './domain/upcast';
import type { EventStore } from './event-store/event-store';
import type { EventSource } from './read-models/event-source';

/** The log as read models see it, where nothing of it is in memory and nobody tells of news. */
export const logSource = (store: EventStore): EventSource => ({
  recent: () => undefined,
  read: async (ledger, from, limit) =>
    (await store.read(ledger, { from, limit })).map(({ bytes }) => decodeEvent(bytes)),
  head: async (ledger) => (await store.head(ledger))?.revision ?? -1,
  onNew: () => () => undefined,
});
