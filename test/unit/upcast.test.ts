import { CURRENT_SCHEMA_VERSION, UnknownEventError, decodeEvent } from '../../src/domain/upcast';

describe('upcasting', () => {
  const raw = (type: string, schemaVersion: unknown, data: unknown = {}) =>
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
    for (const version of [0, -1, 1.5, '1', null, undefined])
      expect(() => decodeEvent(raw('BudgetRetired', version))).toThrow(UnknownEventError);
    expect(() => decodeEvent(raw('BudgetRetired', 2))).toThrow(
      'event BudgetRetired version 2 at revision 7 is not known to this version',
    );
  });

  it('a version on the way that nobody can bring up is an error too', () => {
    const upcasters = { current: { BudgetRetired: 3 }, steps: { BudgetRetired: [(data: unknown) => data] } };
    expect(() => decodeEvent(raw('BudgetRetired', 1), upcasters)).toThrow(
      'event BudgetRetired version 2 at revision 7 is not known to this version',
    );
  });

  it('says what it did not know', () => {
    try {
      decodeEvent(raw('Invented', 4));
      throw new Error('it was read');
    } catch (error) {
      expect(error).toMatchObject({
        name: 'UnknownEventError',
        type: 'Invented',
        schemaVersion: 4,
        revision: 7,
      });
    }
  });
});
