import { formatMoney } from '../money';

const DECIMAL = /^(\d{1,40})(?:\.(\d{1,400}))?(?:e([+-]?\d{1,3}))?$/i;

/**
 * The decimal USD text of a non-negative figure with its point moved by `shift` digits, rounded up at nine decimals.
 * A float goes by its shortest round-trip text ("1.2e-7"), so that 0.0123 is 0.0123 and no float holds money.
 * Throws a RangeError on anything that is not such a figure.
 */
export function decimalUsd(figure: number | string, shift: number): string {
  const parts = DECIMAL.exec(String(figure));
  if (!parts) throw new RangeError('not a decimal figure');
  const [, whole = '0', fraction = '', exponent = '0'] = parts;
  const scale = Number(exponent) - fraction.length + shift + 9;
  const digits = BigInt(whole + fraction);
  if (scale >= 0) return formatMoney(digits * 10n ** BigInt(scale));
  const divisor = 10n ** BigInt(-scale);
  return formatMoney((digits + divisor - 1n) / divisor);
}

/** Whether the text is a non-negative decimal figure, with or without an exponent. */
export const isFigure = (text: string): boolean => DECIMAL.test(text);
