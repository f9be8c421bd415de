import type { EventStore, StoredEvent } from '../event-store/event-store';

/** Own events read back that a subscription may cost before it is given up for being busy. */
const MAX_OWN = 64;

/**
 * Follows what other processes write while this one is idle, so that its next command does not begin with a
 * conflict. A busy writer does not follow: it would read back everything it writes itself.
 */
export class Follower {
  private running: AbortController | undefined;

  constructor(
    private readonly ledger: string,
    private readonly store: EventStore,
    /** Takes events that continue what is confirmed; false: not now. */
    private readonly adopt: (events: readonly StoredEvent[]) => boolean,
    private readonly confirmed: () => number,
    private readonly onError: (error: unknown) => void,
  ) {}

  get isRunning(): boolean {
    return this.running !== undefined;
  }

  start(): void {
    if (this.running) return;
    const controller = new AbortController();
    this.running = controller;
    void this.follow(controller.signal)
      .catch(this.onError)
      .finally(() => {
        if (this.running === controller) this.running = undefined;
      });
  }

  stop(): void {
    this.running?.abort();
    this.running = undefined;
  }

  private async follow(signal: AbortSignal): Promise<void> {
    let own = 0;
    for await (const batch of this.store.subscribe(this.ledger, {
      from: this.confirmed() + 1,
      signal,
    })) {
      if (signal.aborted) return;
      const confirmed = this.confirmed();
      const news = batch.filter(({ revision }) => revision > confirmed);
      own = news.length === 0 ? own + batch.length : 0;
      if (own > MAX_OWN || (news.length > 0 && !this.adopt(news))) {
        this.stop();
        return;
      }
    }
  }
}
