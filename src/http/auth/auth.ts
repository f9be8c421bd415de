import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isLoopback } from '../../config/config';
import { Problem } from '../problems/problem';
import { sendProblem } from '../problems/problem-filter';
import type { KeyStorage, StoredKey } from './storage';

/** Says who asks, or throws a 401 or 403. */
export type Authenticate = (request: FastifyRequest) => string;

const PUBLIC = /^\/(livez|readyz|openapi\.json|docs(\/.*)?|problems\/.*)(\?.*)?$/;
const KEY = /^slk_[\w-]{43}$/;
/** The scheme's name is read in any case (RFC 9110). */
const BEARER = /^bearer +(slk_[\w-]{43})$/i;
const digest = (key: string): Buffer => createHash('sha256').update(key, 'utf8').digest();

export interface AdminKey {
  /** Where it lies, or should. */
  readonly file: string;
  /** Whether it lies there: a start with another folder works, and the key is that of an earlier one. */
  readonly kept: boolean;
  /** The key itself where this start made it. */
  readonly created: string | undefined;
}

/**
 * The first start makes the one admin key. A key that lies in its place already (the database is new, the folder is
 * not) stays the key.
 */
export async function ensureAdminKey(storage: KeyStorage, dataDir: string): Promise<AdminKey> {
  const file = join(dataDir, 'admin.key');
  const found = keyIn(file);
  if (found !== undefined) await storage.add('admin', digest(found), 'admin');
  const created =
    found === undefined && (await adminHash(storage)) === undefined
      ? await createKey(storage, dataDir, file)
      : undefined;
  const kept = keyIn(file);
  const hash = await adminHash(storage);
  return { file, kept: kept !== undefined && hash?.equals(digest(kept)) === true, created };
}

/** Written before it is stored, so that no start ends with a stored key that nobody has; undefined where another was first. */
async function createKey(storage: KeyStorage, dataDir: string, file: string): Promise<string | undefined> {
  const key = `slk_${randomBytes(32).toString('base64url')}`;
  mkdirSync(dataDir, { recursive: true });
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${key}\n`, { mode: 0o600 });
  try {
    if (!(await storage.add('admin', digest(key), 'admin'))) return undefined;
    renameSync(draft, file);
    return key;
  } finally {
    rmSync(draft, { force: true });
  }
}

const adminHash = async (storage: KeyStorage): Promise<Buffer | undefined> =>
  (await storage.keys()).find(({ id }) => id === 'admin')?.hash;

function keyIn(file: string): string | undefined {
  return existsSync(file) ? KEY.exec(readFileSync(file, 'utf8').trim())?.[0] : undefined;
}

/** Bearer keys against the stored hashes, read once: the key of a request costs one hash and no query. */
export async function byKeys(storage: KeyStorage): Promise<Authenticate> {
  const keys: StoredKey[] = await storage.keys();
  return (request) => {
    const given = BEARER.exec(request.headers.authorization ?? '')?.[1];
    if (given !== undefined) {
      const hash = digest(given);
      for (const key of keys) if (timingSafeEqual(key.hash, hash)) return key.id;
    }
    throw new Problem(
      401,
      'unauthorized',
      'an API key is needed: Authorization: Bearer slk_…',
      {},
      { 'www-authenticate': 'Bearer' },
    );
  };
}

/**
 * Without keys only this machine may ask. A Host that is not this machine's is a page in somebody's browser that had
 * its own name point here; an Origin that is not, a page that sends without a body what needs no permission first.
 */
export function byLoopback(): Authenticate {
  return ({ headers }) => {
    if (isHere(`http://${headers.host ?? 'localhost'}`) && isHere(headers.origin ?? 'http://localhost')) {
      return 'anonymous';
    }
    throw new Problem(
      403,
      'forbidden_host',
      'without API keys only requests from this machine to a loopback host are answered',
    );
  };
}

/** Strict: what a parser would repair (user names, paths) is no host or origin at all. */
function isHere(url: string): boolean {
  const host = /^https?:\/\/(\[[0-9a-f:]+\]|[\w.-]+)(?::\d{1,5})?$/i.exec(url)?.[1];
  return host !== undefined && isLoopback(host.toLowerCase().replace(/^\[|\]$/g, ''));
}

/** Before anything else of a request is looked at. */
export function guard(server: FastifyInstance, authenticate: Authenticate): void {
  server.decorateRequest('actor', 'anonymous');
  server.addHook('onRequest', (request, reply, done) => {
    if (PUBLIC.test(request.url)) {
      done();
      return;
    }
    try {
      (request as ActingRequest).actor = authenticate(request);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      sendProblem(reply, error);
      return;
    }
    done();
  });
}

export interface ActingRequest extends FastifyRequest {
  actor: string;
}
