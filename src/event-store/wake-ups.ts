/** Calls to be made when a stream may have grown. */
export class WakeUps {
  private readonly listeners = new Map<string, Set<() => void>>();

  wake(ledger: string): void {
    for (const listener of this.listeners.get(ledger) ?? []) listener();
  }

  wakeAll(): void {
    for (const ledger of this.listeners.keys()) this.wake(ledger);
  }

  /** Listening to one ledger: returns how to stop. */
  of(ledger: string): (listener: () => void) => () => void {
    return (listener) => {
      const set = this.listeners.get(ledger) ?? new Set();
      this.listeners.set(ledger, set.add(listener));
      return () => {
        set.delete(listener);
        if (set.size === 0) this.listeners.delete(ledger);
      };
    };
  }
}
