import { hash as digest } from 'node:crypto';
import { canonicalJson } from './canonical-json';
import type { LedgerEvent, Recorded } from './events';
import { upcast } from './upcast';
import type { RawEvent } from './upcast';

/** What stands before the first event. */
export const GENESIS_HASH = '0'.repeat(64);

export interface Unsealed {
  readonly id: string;
  readonly event: LedgerEvent;
  readonly schemaVersion: number;
  readonly ledger: string;
  readonly revision: number;
  readonly atMs: number;
  readonly correlationId: string;
  readonly causationId: string;
  readonly actor: string;
  readonly traceparent?: string;
  readonly previousHash: string;
}

export interface SealedBytes {
  readonly id: string;
  readonly type: string;
  readonly revision: number;
  readonly at: number;
  readonly bytes: Buffer;
}

export interface Sealed {
  readonly sealed: SealedBytes;
  readonly recorded: Recorded;
  readonly hash: string;
}

/** In one call, of the text as UTF-8: a hash object costs half as much again. */
const sha256 = (text: string): string => digest('sha256', text, 'hex');

/**
 * Writes an event's envelope as canonical JSON once, hashes it, and puts the hash into the text at its sorted
 * place. Those exact bytes are stored, and verified (DESIGN 4 and 7).
 */
export function sealEvent(unsealed: Unsealed): Sealed {
  const { id, event, schemaVersion, ledger, revision, atMs, previousHash } = unsealed;
  const at = new Date(atMs).toISOString();
  const quoted = JSON.stringify;
  const head =
    `{"at":"${at}","data":${canonicalJson(event.data)},"id":${quoted(id)},"ledger":${quoted(ledger)},` +
    `"metadata":{"actor":${quoted(unsealed.actor)},"causationId":${quoted(unsealed.causationId)},` +
    `"correlationId":${quoted(unsealed.correlationId)},`;
  const trace = unsealed.traceparent === undefined ? '' : `,"traceparent":${quoted(unsealed.traceparent)}`;
  const tail = `"previousHash":"${previousHash}"${trace}},"revision":${revision},"schemaVersion":${schemaVersion},"type":"${event.type}"}`;
  const hash = sha256(head + tail);
  const bytes = Buffer.from(`${head}"hash":"${hash}",${tail}`, 'utf8');
  const metadata = {
    actor: unsealed.actor,
    causationId: unsealed.causationId,
    correlationId: unsealed.correlationId,
    hash,
    previousHash,
    traceparent: unsealed.traceparent,
  };
  const { type, data } = event;
  const recorded = { at, data, id, ledger, metadata, revision, schemaVersion, type } as Recorded;
  return { sealed: { id, type: event.type, revision, at: atMs, bytes }, recorded, hash };
}

export type Verified =
  | { readonly ok: true; readonly recorded: Recorded; readonly hash: string }
  | { readonly ok: false; readonly fault: string };

/** Hashes an event's exact bytes anew: they must be canonical, match their hash, and follow the one before. */
export function verifySealed(bytes: Buffer, previousHash: string): Verified {
  const text = bytes.toString('utf8');
  let raw: RawEvent | null;
  try {
    raw = JSON.parse(text) as RawEvent | null;
  } catch {
    return { ok: false, fault: 'is not JSON' };
  }
  const metadata = raw?.metadata as Partial<Recorded['metadata']> | null | undefined;
  const hash = metadata?.hash;
  if (raw === null || typeof hash !== 'string') return { ok: false, fault: 'has no hash' };
  // As bytes: decoded to text, every invalid sequence looks like the same replacement character.
  if (!Buffer.from(canonicalJson(raw), 'utf8').equals(bytes))
    return { ok: false, fault: 'is not in canonical form' };
  if (sha256(text.replace(`"hash":"${hash}",`, '')) !== hash)
    return { ok: false, fault: 'does not match its hash' };
  if (metadata?.previousHash !== previousHash)
    return { ok: false, fault: 'does not follow the event before it' };
  try {
    return { ok: true, recorded: upcast(raw), hash };
  } catch (error) {
    return { ok: false, fault: error instanceof Error ? error.message : String(error) };
  }
}
