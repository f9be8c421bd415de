import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { canonicalJson } from '../../src/domain/canonical-json';
import type { LedgerEvent } from '../../src/domain/events';
import { GENESIS_HASH, sealEvent, verifySealed } from '../../src/domain/sealing';
import { decodeEvent } from '../../src/domain/upcast';

const event: LedgerEvent = { type: 'BudgetRetired', data: { id: 'day', generation: 2 } };
const seal = (revision: number, previousHash: string, data: LedgerEvent = event) =>
  sealEvent({
    id: '01890a5d-ac96-774b-bcce-b302099a8057',
    event: data,
    schemaVersion: 1,
    ledger: 'main',
    revision,
    atMs: 1_796_040_000_123,
    correlationId: 'c',
    causationId: 'k',
    actor: 'é"',
    previousHash,
  });

describe('canonical JSON', () => {
  it('is what an independent implementation of RFC 8785 writes', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' }), (value) => {
        expect(canonicalJson(value)).toBe(canonicalize(value));
      }),
      { numRuns: 500 },
    );
  });

  it('sorts keys that look like numbers as text, and leaves out what is undefined', () => {
    expect(canonicalJson({ b: 1, '10': 2, '9': 3, a: undefined })).toBe('{"10":2,"9":3,"b":1}');
  });
});

describe('sealing', () => {
  it('seals any text into what an independent implementation of RFC 8785 writes, and reads it back', () => {
    const text = fc.string({ unit: 'binary' });
    fc.assert(
      fc.property(text, text, text, fc.option(text, { nil: undefined }), (id, actor, ledger, traceparent) => {
        const { sealed, recorded, hash } = sealEvent({
          id: '01890a5d-ac96-774b-bcce-b302099a8057',
          event: { type: 'BudgetRetired', data: { id, generation: 1 } },
          schemaVersion: 1,
          ledger,
          revision: 3,
          atMs: 1_796_040_000_123,
          correlationId: 'c',
          causationId: 'k',
          actor,
          traceparent,
          previousHash: GENESIS_HASH,
        });
        const stored: unknown = JSON.parse(sealed.bytes.toString('utf8'));
        expect(sealed.bytes.equals(Buffer.from(canonicalize(stored) ?? '', 'utf8'))).toBe(true);
        expect(decodeEvent(sealed.bytes)).toEqual(recorded);
        expect(verifySealed(sealed.bytes, GENESIS_HASH)).toMatchObject({ ok: true, hash });
      }),
      { numRuns: 200 },
    );
  });

  it('hashes the canonical JSON of the envelope without its hash', () => {
    const { sealed, hash } = seal(0, GENESIS_HASH);
    const envelope = JSON.parse(sealed.bytes.toString('utf8')) as { metadata: { hash?: string } };
    delete envelope.metadata.hash;
    expect(
      createHash('sha256')
        .update(canonicalize(envelope) ?? '', 'utf8')
        .digest('hex'),
    ).toBe(hash);
  });

  it('any one changed byte is found out', () => {
    const { sealed } = seal(0, GENESIS_HASH, {
      type: 'BudgetRetired',
      data: { id: '\uFFFD é', generation: 2 },
    });
    const place = fc.nat(sealed.bytes.length - 1);
    fc.assert(
      fc.property(place, fc.integer({ min: 1, max: 255 }), (at, difference) => {
        const changed = Buffer.from(sealed.bytes);
        changed[at] = (changed[at] ?? 0) ^ difference;
        expect(verifySealed(changed, GENESIS_HASH).ok).toBe(false);
      }),
      { numRuns: 1_000 },
    );
  });

  it('bytes that only decode to the same text are found out', () => {
    const { sealed } = seal(0, GENESIS_HASH, {
      type: 'BudgetRetired',
      data: { id: '\uFFFD', generation: 2 },
    });
    const at = sealed.bytes.indexOf('\uFFFD');
    const [before, rest] = [sealed.bytes.subarray(0, at), sealed.bytes.subarray(at + 3)];
    const changed = Buffer.concat([before, Buffer.from([0xff]), rest]);
    expect(changed.toString('utf8')).toBe(sealed.bytes.toString('utf8'));
    expect(verifySealed(changed, GENESIS_HASH)).toEqual({ ok: false, fault: 'is not in canonical form' });
  });

  it('what is no event at all is a fault, not an exception', () => {
    for (const text of ['null', '7', '[]', '{"metadata":null}', '{"metadata":{"hash":5}}', '"hash"'])
      expect(verifySealed(Buffer.from(text), GENESIS_HASH)).toEqual({ ok: false, fault: 'has no hash' });
    expect(verifySealed(Buffer.from(''), GENESIS_HASH)).toEqual({ ok: false, fault: 'is not JSON' });
  });

  it('a removed, a repeated and a moved event break the chain where they are missed', () => {
    const chain: ReturnType<typeof seal>[] = [];
    for (let revision = 0; revision < 4; revision += 1)
      chain.push(seal(revision, chain.at(-1)?.hash ?? GENESIS_HASH));
    /** How many events, from the first, are still in the chain. */
    const intact = (order: number[]): number => {
      let hash = GENESIS_HASH;
      return order.findIndex((i) => {
        const verified = verifySealed(chain[i]?.sealed.bytes ?? Buffer.from(''), hash);
        if (verified.ok) hash = verified.hash;
        return !verified.ok;
      });
    };
    expect(intact([0, 1, 2, 3])).toBe(-1);
    expect(intact([0, 2, 3])).toBe(1);
    expect(intact([1, 2, 3])).toBe(0);
    expect(intact([0, 1, 1, 2, 3])).toBe(2);
    expect(intact([0, 2, 1, 3])).toBe(1);
  });

  it('stores canonical bytes whose hash covers all of the envelope', () => {
    const { sealed, recorded, hash } = seal(0, GENESIS_HASH);
    const text = sealed.bytes.toString('utf8');
    expect(text).toBe(canonicalize(JSON.parse(text)));
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(recorded)));
    expect(verifySealed(sealed.bytes, GENESIS_HASH)).toMatchObject({ ok: true, hash });
    expect(recorded.at).toBe('2026-11-30T12:00:00.123Z');
  });

  it('a changed byte, another order and a missing event are found out', () => {
    const first = seal(0, GENESIS_HASH);
    const second = seal(1, first.hash);
    const changed = Buffer.from(
      second.sealed.bytes.toString('utf8').replace('"generation":2', '"generation":3'),
    );
    expect(verifySealed(changed, first.hash)).toEqual({ ok: false, fault: 'does not match its hash' });
    expect(verifySealed(second.sealed.bytes, GENESIS_HASH)).toEqual({
      ok: false,
      fault: 'does not follow the event before it',
    });
    const reordered = Buffer.from(
      JSON.stringify({ type: 'x', ...JSON.parse(second.sealed.bytes.toString('utf8')) }),
    );
    expect(verifySealed(reordered, first.hash)).toEqual({ ok: false, fault: 'is not in canonical form' });
    expect(verifySealed(Buffer.from('{'), first.hash)).toMatchObject({ ok: false });
  });

  it('text that looks like the hash’s own place does not confuse it', () => {
    const hash = seal(0, GENESIS_HASH).hash;
    const sneaky: LedgerEvent = { type: 'BudgetRetired', data: { id: `"hash":"${hash}",`, generation: 1 } };
    expect(verifySealed(seal(0, GENESIS_HASH, sneaky).sealed.bytes, GENESIS_HASH)).toMatchObject({
      ok: true,
    });
  });
});
