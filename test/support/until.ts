import { setTimeout as delay } from 'node:timers/promises';

const WAIT_MS = 15_000;
const POLL_MS = 20;

/** Waits for a condition, not for a time. Throws with what was waited for when it does not come about. */
export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + WAIT_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await delay(POLL_MS);
  }
}
