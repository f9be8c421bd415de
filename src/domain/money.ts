/**
 * Money is a whole number of nano-dollars (10⁻⁹ USD) in a bigint. Outside the service it is a decimal USD
 * string in its shortest form ("0", "0.02148", "42.805195"). No float ever holds money (RULES 24: 0.6619999999).
 */
declare const moneyBrand: unique symbol;
export type Money = bigint & { readonly [moneyBrand]: 'nano-usd' };

export const NANOS_PER_DOLLAR = 1_000_000_000n;
export const ZERO = 0n as Money;
/** The largest amount the edge accepts: 1,000,000 USD. */
export const MAX_AMOUNT = (1_000_000n * NANOS_PER_DOLLAR) as Money;

const DECIMAL = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?$/;

/** Whether the text is a decimal USD amount of at most nine decimals ("1", "0.5", "-2.25"). */
export function isMoney(text: string): boolean {
  return DECIMAL.test(text);
}

/** Nano-dollars of a decimal USD string. Throws a RangeError on anything that is not one. */
export function parseMoney(text: string): Money {
  const parts = DECIMAL.exec(text);
  if (!parts) throw new RangeError('not a decimal USD amount with at most nine decimals');
  const nanos = BigInt(parts[2] ?? '0') * NANOS_PER_DOLLAR + BigInt((parts[3] ?? '').padEnd(9, '0'));
  return (parts[1] === '-' ? -nanos : nanos) as Money;
}

/** The shortest decimal USD string of an amount in nano-dollars. */
export function formatMoney(amount: bigint): string {
  const negative = amount < 0n;
  const digits = (negative ? -amount : amount).toString().padStart(10, '0');
  const whole = digits.slice(0, -9);
  const fraction = digits.slice(-9).replace(/0+$/, '');
  return (negative ? '-' : '') + whole + (fraction === '' ? '' : `.${fraction}`);
}

export const money = (nanos: bigint): Money => nanos as Money;
export const add = (a: Money, b: Money): Money => (a + b) as Money;
export const subtract = (a: Money, b: Money): Money => (a - b) as Money;
export const atLeastZero = (a: bigint): Money => (a > 0n ? a : 0n) as Money;
export const larger = (a: Money, b: Money): Money => (a > b ? a : b);
