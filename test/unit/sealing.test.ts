import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { canonicalJson } from '../../src/domain/canonical-json';
import type { LedgerEvent } from '../../src/domain/events';
import { GENESIS_HASH, sealEvent, verifySealed } from '../../src/domain/sealing';
import { CURRENT_SCHEMA_VERSION, UnknownEventError, decodeEvent } from '../../src/domain/upcast';

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
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
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

describe('upcasting', () => {
  const raw = (type: string, schemaVersion: number, data: unknown = {}) =>
    Buffer.from(JSON.stringify({ type, schemaVersion, revision: 7, data }));

  it('brings an old event up, step by step', () => {
    const upcasters = {
      current: { ...CURRENT_SCHEMA_VERSION, BudgetRetired: 3 },
      steps: {
        BudgetRetired: [
          (data: unknown) => ({ ...(data as object), a: 1 }),
          (data: unknown) => ({ ...(data as object), b: 2 }),
        ],
      },
    };
    expect(decodeEvent(raw('BudgetRetired', 1, { id: 'x' }), upcasters)).toMatchObject({
      schemaVersion: 3,
      data: { id: 'x', a: 1, b: 2 },
    });
    expect(decodeEvent(raw('BudgetRetired', 2, { id: 'x' }), upcasters).data).toEqual({ id: 'x', b: 2 });
  });

  it('casebook 35: a type or version nobody knows is an error, never skipped', () => {
    expect(() => decodeEvent(raw('Invented', 1))).toThrow(UnknownEventError);
    expect(() => decodeEvent(raw('constructor', 1))).toThrow(UnknownEventError);
    expect(() => decodeEvent(raw('BudgetRetired', 2))).toThrow(
      'event BudgetRetired version 2 at revision 7 is not known to this version',
    );
  });
});
