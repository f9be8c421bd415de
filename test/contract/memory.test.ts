import { InMemoryEventStore } from '../../src/event-store/memory/in-memory-event-store';
import { eventStoreContract } from './event-store.contract';

describe('the log in memory', () => {
  const store = new InMemoryEventStore();
  eventStoreContract(() => Promise.resolve(store));
});
