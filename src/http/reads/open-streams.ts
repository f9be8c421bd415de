import { Problem } from '../problems/problem';

/** Live streams a process keeps open. */
const MOST_STREAMS = 256;

/** The live streams of this process: bounded, and ended when the service ends. */
export class OpenStreams {
  private readonly open = new Set<AbortController>();

  /** The stream ends when its signal is aborted, by whoever. Throws a 503 where too many are open. */
  begin(): AbortController {
    if (this.open.size >= MOST_STREAMS) {
      throw new Problem(
        503,
        'too_many_streams',
        'too many live streams are open',
        {},
        { 'retry-after': '5' },
      );
    }
    const abort = new AbortController();
    this.open.add(abort);
    abort.signal.addEventListener('abort', () => this.open.delete(abort), { once: true });
    return abort;
  }

  closeAll(): void {
    for (const abort of [...this.open]) abort.abort();
  }
}
