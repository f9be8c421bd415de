import type { ReadModel } from '../read-model';
import type { Checkpoint } from './checkpoints';
import type { Target } from './batch-step';

/**
 * `live`: in the common feed. `catching-up`: behind, reads the log alone. `failed`: stopped at an event, tries again
 * after a while. `superseded`: its rows were built by a newer program, which feeds them.
 */
export type ModelState = 'live' | 'catching-up' | 'failed' | 'superseded';

const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 30_000;

/** A model of one ledger, as this process knows it. */
export class TrackedModel {
  state: ModelState = 'live';
  version = 0;
  position = -1;
  hash = '';
  shape = 0;
  error: string | undefined;
  private failures = 0;
  private retryAt = 0;

  constructor(readonly model: ReadModel) {}

  get target(): Target {
    return { model: this.model, version: this.version, role: 'active' };
  }

  /** Takes over what the database says. */
  refresh(checkpoint: Checkpoint): void {
    const moved = checkpoint.position !== this.position || checkpoint.version !== this.version;
    this.version = checkpoint.version;
    this.position = checkpoint.position;
    this.hash = checkpoint.hash;
    this.shape = checkpoint.shape;
    if (checkpoint.shape > this.model.shape) {
      this.state = 'superseded';
      this.error = `built by shape ${String(checkpoint.shape)}, this program knows ${String(this.model.shape)}`;
    } else if (this.state === 'superseded' || (moved && this.state === 'failed')) this.recovered();
  }

  movedTo(position: number, hash: string): void {
    this.position = position;
    this.hash = hash;
    this.error = undefined;
    this.failures = 0;
  }

  recovered(): void {
    this.state = 'catching-up';
    this.error = undefined;
    this.failures = 0;
  }

  fail(error: unknown, nowMs: number): void {
    this.state = 'failed';
    this.error = error instanceof Error ? error.message : String(error);
    this.retryAt = nowMs + Math.min(FIRST_RETRY_MS * 2 ** this.failures, LAST_RETRY_MS);
    this.failures = Math.min(this.failures + 1, 16);
  }

  /** Whether to try it on its own now. */
  isDueAlone(nowMs: number): boolean {
    return this.state === 'catching-up' || (this.state === 'failed' && this.retryAt <= nowMs);
  }
}
