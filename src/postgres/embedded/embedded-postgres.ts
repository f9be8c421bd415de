import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../log';
import { packagedBinaries, usableBinaries, type PostgresBinaries } from './binaries';
import { openCluster, type Cluster } from './cluster';
import type { OsAccount } from './os-account';
import { placeCluster, SHELTER } from './place';
import { freePort, launchServer, removeStaleLock, runningPostmaster, stopServer } from './server';
import { UseSession } from './use-session';

export interface EmbeddedRequest {
  /** DATA_DIR; made where it is missing. */
  readonly dataDir: string;
  readonly log: Log;
  /** The binaries' `native` folder; default: what npm installed. */
  readonly native?: string;
  /** Where root puts what the server's OS user must reach but cannot in DATA_DIR or node_modules. */
  readonly shelters?: readonly string[];
}

export interface EmbeddedPostgres {
  /** With a password: never logged. */
  readonly url: string;
  /** The server ran already: another service's, or one that a killed service left. */
  readonly adopted: boolean;
  /** The folder with its data. */
  readonly dataDir: string;
  /** Stops the server unless another service uses it. Idempotent. */
  stop(): Promise<void>;
}

const ATTACH_TIMEOUT_MS = 180_000;
const POLL_MS = 50;
const REVIVE_DELAY_MS = 500;
const MAX_REVIVE_DELAY_MS = 15_000;

/**
 * Starts PostgreSQL for this DATA_DIR on a loopback port, or adopts the one that runs there. It outlives the signals that
 * end the service, so `stop` must be called; it is started again by itself should it die.
 */
export async function startEmbeddedPostgres(request: EmbeddedRequest): Promise<EmbeddedPostgres> {
  const { log, shelters = [SHELTER] } = request;
  const place = await placeCluster(request.dataDir, shelters, log);
  const binaries = await usableBinaries({
    native: request.native ?? packagedBinaries(),
    account: place.account,
    cacheRoots:
      place.account === undefined
        ? [request.dataDir]
        : [...shelters, path.join(tmpdir(), 'spend-ledger-binaries')],
    log,
  });
  const cluster = await openCluster({ home: place.home, binaries, account: place.account, durable: true });
  await place.remember();
  return new SharedServer(cluster, binaries, place.account, log).open();
}

interface Attachment {
  readonly session: UseSession;
  readonly port: number;
  readonly adopted: boolean;
}

class SharedServer {
  #session: UseSession | undefined;
  #stopping: Promise<void> | undefined;
  #reviving: Promise<void> | undefined;
  readonly #stopSignal = new AbortController();

  constructor(
    private readonly cluster: Cluster,
    private readonly binaries: PostgresBinaries,
    private readonly account: OsAccount | undefined,
    private readonly log: Log,
  ) {}

  async open(): Promise<EmbeddedPostgres> {
    const { session, port, adopted } = await this.attach();
    this.use(session, port);
    const fields = { dataDir: this.cluster.home, port };
    this.log.info(adopted ? 'adopted the PostgreSQL that runs here already' : 'started PostgreSQL', fields);
    return {
      url: this.url(port),
      adopted,
      dataDir: this.cluster.home,
      stop: () => (this.#stopping ??= this.stop()),
    };
  }

  private url(port: number): string {
    return `postgres://postgres:${this.cluster.password}@127.0.0.1:${String(port)}/postgres`;
  }

  /** `samePort`: others have the address already. */
  private async attach(samePort?: number): Promise<Attachment> {
    const deadline = performance.now() + ATTACH_TIMEOUT_MS;
    let launched = false;
    while (performance.now() < deadline && !this.#stopSignal.signal.aborted) {
      const running = await runningPostmaster(this.cluster.data);
      if (running === undefined) {
        launched = await this.launch(samePort);
      } else if (running.port > 0) {
        if (samePort !== undefined && running.port !== samePort) {
          throw new Error(`PostgreSQL runs on port ${String(running.port)} now: restart this service`);
        }
        const session = await UseSession.open(this.url(running.port));
        if (session !== undefined) return { session, port: running.port, adopted: !launched };
      }
      await delay(POLL_MS);
    }
    throw new Error(`PostgreSQL in ${this.cluster.data} does not take connections`);
  }

  /** False where another service was quicker. */
  private async launch(samePort: number | undefined): Promise<boolean> {
    const { data } = this.cluster;
    await removeStaleLock(data);
    const port = samePort ?? (await freePort(await this.lastPort()));
    try {
      const logFile = path.join(this.cluster.home, 'server.log');
      await launchServer({ binaries: this.binaries, account: this.account, data, port, logFile });
      return true;
    } catch (error) {
      if ((await runningPostmaster(data)) !== undefined) return false;
      throw error;
    }
  }

  /** The port of the last start, so that a service which still has that address finds its way back. */
  private async lastPort(): Promise<number> {
    const options = await readFile(path.join(this.cluster.data, 'postmaster.opts'), 'utf8').catch(() => '');
    return Number(/"-p" "(\d+)"/.exec(options)?.[1] ?? 0);
  }

  private use(session: UseSession, port: number): void {
    this.#session = session;
    session.onLost(() => {
      if (this.#stopping === undefined) this.#reviving = this.revive(port);
    });
  }

  /** The server died or was stopped by somebody else: a service without it can only refuse. */
  private async revive(port: number): Promise<void> {
    this.log.warn('the embedded PostgreSQL went away; starting it again', { port });
    for (let wait = REVIVE_DELAY_MS; ; wait = Math.min(wait * 2, MAX_REVIVE_DELAY_MS)) {
      try {
        await delay(wait, undefined, { signal: this.#stopSignal.signal, ref: false });
        const { session } = await this.attach(port);
        this.use(session, port);
        this.log.info('the embedded PostgreSQL is back', { port });
        return;
      } catch (error) {
        if (this.#stopSignal.signal.aborted) return;
        this.log.warn('the embedded PostgreSQL did not come back yet', { error: String(error) });
      }
    }
  }

  private async stop(): Promise<void> {
    this.#stopSignal.abort();
    await this.#reviving;
    const session = await this.liveSession();
    if (session === undefined) return;
    if (await session.leave()) {
      const running = await runningPostmaster(this.cluster.data);
      if (running !== undefined) await stopServer(this.cluster.data, running.pid);
      this.log.info('stopped PostgreSQL');
    } else {
      this.log.info('left PostgreSQL running: another service uses it');
    }
    await session.end();
  }

  /** The service may be told to stop just after its server came back, before it had a session there again. */
  private async liveSession(): Promise<UseSession | undefined> {
    if (this.#session?.lost === false) return this.#session;
    const running = await runningPostmaster(this.cluster.data);
    return running === undefined ? undefined : UseSession.open(this.url(running.port));
  }
}
