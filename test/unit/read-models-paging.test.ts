import { bucketKeyText } from '../../src/read-models/budgets/bucket-deltas';
import {
  InvalidCursorError,
  decodeCursor,
  decodeRevision,
  limitOf,
  pageOf,
} from '../../src/read-models/paging';

describe('paging', () => {
  it('has 100 entries by default and 1,000 at most', () => {
    expect([undefined, 0, 5, 1_000, 5_000].map((limit) => limitOf({ limit }))).toEqual([
      100, 1, 5, 1_000, 1_000,
    ]);
  });

  it('gives a cursor only where more follows, and reads it back', () => {
    const page = (rows: readonly string[]) =>
      pageOf(
        rows,
        2,
        (row) => [row],
        (row) => row,
      );
    expect(page(['a', 'b'])).toEqual({ data: ['a', 'b'] });
    const { data, nextCursor } = page(['a', 'b', 'c']);
    expect(data).toEqual(['a', 'b']);
    expect(decodeCursor({ cursor: nextCursor }, 1)).toEqual(['b']);
    expect(decodeCursor({}, 1)).toBeUndefined();
  });

  it('refuses cursors of others', () => {
    const foreign = [
      '',
      'x',
      Buffer.from('{"a":1}').toString('base64url'),
      Buffer.from('["a","b"]').toString('base64url'),
    ];
    for (const cursor of foreign) expect(() => decodeCursor({ cursor }, 1)).toThrow(InvalidCursorError);
    const words = Buffer.from('["abc"]').toString('base64url');
    expect(() => decodeRevision({ cursor: words })).toThrow(InvalidCursorError);
  });
});

describe('a bucket key', () => {
  it('does not depend on the order of dimensions, and tells a missing value from every text', () => {
    expect(bucketKeyText({ subject: 'a', model: 'm' })).toBe(bucketKeyText({ model: 'm', subject: 'a' }));
    expect(bucketKeyText({ subject: null })).not.toBe(bucketKeyText({ subject: 'null' }));
    expect(bucketKeyText(undefined)).toBe('');
  });

  it('stays short for long values, and apart', () => {
    const long = 'x'.repeat(5_000);
    expect(bucketKeyText({ subject: `${long}1` }).length).toBe(256 + 64);
    expect(bucketKeyText({ subject: `${long}1` })).not.toBe(bucketKeyText({ subject: `${long}2` }));
  });
});
