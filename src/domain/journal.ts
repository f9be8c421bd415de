/**
 * Undo log of in-place mutation. `evolve` changes state only through a journal, so that a batch whose append
 * failed can be taken back exactly: rebuilding state immutably costs milliseconds an event with ten thousand budgets.
 */
export interface Journal {
  /** object[key] = value */
  set<T extends object, K extends keyof T>(object: T, key: K, value: T[K]): void;
  put<K, V>(map: Map<K, V>, key: K, value: V): void;
  remove<K, V>(map: Map<K, V>, key: K): void;
  include<V>(set: Set<V>, value: V): void;
  exclude<V>(set: Set<V>, value: V): void;
  /** Runs on undo, for changes that the others cannot say. */
  onUndo(undo: () => void): void;
}

/** Keeps nothing: for events that are already durable. */
export const NO_JOURNAL: Journal = {
  set(object, key, value) {
    object[key] = value;
  },
  put(map, key, value) {
    map.set(key, value);
  },
  remove(map, key) {
    map.delete(key);
  },
  include(set, value) {
    set.add(value);
  },
  exclude(set, value) {
    set.delete(value);
  },
  onUndo() {
    /* nothing will be undone */
  },
};

/** A journal that can be marked, cut and undone. One batch is one section. */
export class UndoJournal implements Journal {
  private readonly undos: (() => void)[] = [];

  get length(): number {
    return this.undos.length;
  }

  set<T extends object, K extends keyof T>(object: T, key: K, value: T[K]): void {
    const had = Object.hasOwn(object, key);
    const old = object[key];
    this.undos.push(() => {
      if (had) object[key] = old;
      else Reflect.deleteProperty(object, key);
    });
    object[key] = value;
  }

  put<K, V>(map: Map<K, V>, key: K, value: V): void {
    const old = map.get(key);
    const had = old !== undefined || map.has(key);
    this.undos.push(() => {
      if (had) map.set(key, old as V);
      else map.delete(key);
    });
    map.set(key, value);
  }

  remove<K, V>(map: Map<K, V>, key: K): void {
    if (!map.has(key)) return;
    const old = map.get(key) as V;
    this.undos.push(() => map.set(key, old));
    map.delete(key);
  }

  include<V>(set: Set<V>, value: V): void {
    if (set.has(value)) return;
    this.undos.push(() => set.delete(value));
    set.add(value);
  }

  exclude<V>(set: Set<V>, value: V): void {
    if (!set.has(value)) return;
    this.undos.push(() => set.add(value));
    set.delete(value);
  }

  onUndo(undo: () => void): void {
    this.undos.push(undo);
  }

  /** Takes back everything after `mark` (a former `length`), newest first. */
  undoTo(mark: number): void {
    for (let i = this.undos.length - 1; i >= mark; i -= 1) this.undos[i]?.();
    this.undos.length = mark;
  }

  /** Forgets the oldest `count` entries: what they changed is durable now. */
  forget(count: number): void {
    this.undos.splice(0, count);
  }
}
