import type { Pending } from './pending';

/** Commands in the order in which they are decided, bounded by count and bytes. */
export class CommandQueue {
  private items: Pending[] = [];
  private first = 0;
  private queuedBytes = 0;

  constructor(
    private readonly maxCommands: number,
    private readonly maxBytes: number,
  ) {}

  get size(): number {
    return this.items.length - this.first;
  }

  /** Whether another command of this size would be too much. */
  isFullFor(bytes: number): boolean {
    return this.size >= this.maxCommands || this.queuedBytes + bytes > this.maxBytes;
  }

  push(pending: Pending): void {
    this.items.push(pending);
    this.queuedBytes += pending.bytes;
  }

  /** The next command; those nobody waits for any more are dropped. */
  peek(): Pending | undefined {
    for (;;) {
      const pending = this.items[this.first];
      if (!pending?.settled) return pending;
      this.drop(pending);
    }
  }

  shift(): void {
    const pending = this.items[this.first];
    if (pending) this.drop(pending);
  }

  /** Puts commands back in front, in their order: their batch was taken back. The bound does not hold for them. */
  putBack(commands: readonly Pending[]): void {
    if (commands.length === 0) return;
    this.items = [...commands, ...this.items.slice(this.first)];
    this.first = 0;
    for (const { bytes } of commands) this.queuedBytes += bytes;
  }

  private drop(pending: Pending): void {
    this.first += 1;
    this.queuedBytes -= pending.bytes;
    if (this.first < 1_024 || this.first * 2 < this.items.length) {
      if (this.first === this.items.length) {
        this.items.length = 0;
        this.first = 0;
      }
      return;
    }
    this.items = this.items.slice(this.first);
    this.first = 0;
  }
}
