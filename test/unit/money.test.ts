import fc from 'fast-check';
import { formatMoney, isMoney, parseMoney } from '../../src/domain/money';

describe('money', () => {
  it.each([
    ['0', 0n],
    ['0.02148', 21_480_000n],
    ['42.805195', 42_805_195_000n],
    ['-1.5', -1_500_000_000n],
    ['0.000000001', 1n],
  ])('reads %s as nano-dollars and writes it back', (text, nanos) => {
    expect(parseMoney(text)).toBe(nanos);
    expect(formatMoney(nanos)).toBe(text);
  });

  it('writes the shortest form', () => {
    expect(formatMoney(parseMoney('5.00'))).toBe('5');
    expect(formatMoney(parseMoney('0.500000000'))).toBe('0.5');
    expect(formatMoney(parseMoney('-0'))).toBe('0');
  });

  it.each(['', '1e3', '.5', '1.', '1.0000000001', '0x1', '1,000', ' 1', 'NaN', '--1', '1.2.3'])(
    'refuses %j',
    (text) => {
      expect(isMoney(text)).toBe(false);
      expect(() => parseMoney(text)).toThrow(RangeError);
    },
  );

  it('casebook 24: survives a round trip for any amount, without floats', () => {
    fc.assert(
      fc.property(fc.bigInt(-(10n ** 20n), 10n ** 20n), (nanos) => {
        expect(parseMoney(formatMoney(nanos))).toBe(nanos);
      }),
    );
  });

  it('casebook 24: 2,500 amounts of 0.004 are exactly 10', () => {
    let total = 0n;
    for (let i = 0; i < 2_500; i += 1) total += parseMoney('0.004');
    expect(formatMoney(total)).toBe('10');
  });
});
