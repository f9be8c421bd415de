import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isLoopback } from '../../config/config';
import { Problem } from '../problems/problem';
import { sendProblem } from '../problems/problem-filter';
import type { KeyStorage, StoredKey } from './storage';

/** Says who asks, or throws a 401 or 403. */
export type Authenticate = (request: FastifyRequest) => string;

const PUBLIC = /^\/(livez|readyz|openapi\.json|docs(\/.*)?|problems\/.*)(\?.*)?$/;
const digest = (key: string): Buffer => createHash('sha256').update(key, 'utf8').digest();

/** The first start makes the one admin key; where it lies, and whether it was made now. */
export async function ensureAdminKey(
  storage: KeyStorage,
  dataDir: string,
): Promise<{ readonly created: string | undefined; readonly file: string }> {
  const file = join(dataDir, 'admin.key');
  if ((await storage.keys()).some(({ id }) => id === 'admin')) return { created: undefined, file };
  const key = `slk_${randomBytes(32).toString('base64url')}`;
  if (!(await storage.add('admin', digest(key), 'admin'))) return { created: undefined, file };
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(file, `${key}\n`, { mode: 0o600 });
  return { created: key, file };
}

export const keyFileExists = (file: string): boolean => existsSync(file);

/** Bearer keys against the stored hashes, which are read again at most once a second for a key nobody knows. */
export async function byKeys(storage: KeyStorage): Promise<Authenticate> {
  const keys: StoredKey[] = await storage.keys();
  return (request) => {
    const given = /^Bearer (slk_[\w-]{43})$/.exec(request.headers.authorization ?? '')?.[1];
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

/** Without keys only this machine may ask; a Host that is not this machine's is a page in somebody's browser. */
export function byLoopback(): Authenticate {
  return (request) => {
    const { hostname } = new URL(`http://${request.headers.host ?? 'localhost'}`);
    if (isLoopback(hostname.replace(/^\[|\]$/g, ''))) return 'anonymous';
    throw new Problem(
      403,
      'forbidden_host',
      'without API keys only requests to a loopback host are answered',
    );
  };
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
      const forbidden = new Problem(403, 'forbidden_host', 'the Host header cannot be read');
      sendProblem(reply, error instanceof Problem ? error : forbidden);
      return;
    }
    done();
  });
}

export interface ActingRequest extends FastifyRequest {
  actor: string;
}
