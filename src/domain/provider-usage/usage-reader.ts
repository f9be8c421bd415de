import { MAX_AMOUNT, formatMoney } from '../money';
import { MAX_COUNT } from '../usage';
import { decimalUsd, isFigure } from './decimal-usd';

/** What is wrong with one field. Names the field, never its value. */
export interface UsageFault {
  readonly path: string;
  readonly message: string;
}

export type Fields = Readonly<Record<string, unknown>>;

const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null;
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** No provider breaks a count down further, and nobody reads more faults. */
const MOST_ITEMS = 1_000;
const MOST_FAULTS = 100;

/** Reads the fields of a usage object by path and collects what is wrong with them. A null is an absent field. */
export class UsageReader {
  constructor(
    private readonly fields: Fields,
    readonly faults: UsageFault[] = [],
    private readonly within = '',
  ) {}

  /** Whether all of the fields have a value. */
  has(...names: string[]): boolean {
    return names.every((name) => !isAbsent(this.own(name)));
  }

  /** Whether any of the fields is there, if only as null: enough to tell a shape by. */
  mentions(...names: string[]): boolean {
    return names.some((name) => Object.hasOwn(this.fields, name));
  }

  /** A count of tokens or pieces; 0 where it is absent. */
  count(...path: string[]): number {
    const value = this.at(path);
    if (isAbsent(value)) return 0;
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_COUNT)
      return value;
    this.fault(path, `is not a whole number from 0 to ${MAX_COUNT}`);
    return 0;
  }

  /** Seconds, whole or not, rounded up; 0 where they are absent. */
  seconds(...path: string[]): number {
    const value = this.at(path);
    if (isAbsent(value)) return 0;
    if (typeof value === 'number' && value >= 0 && value <= MAX_COUNT) return Math.ceil(value);
    this.fault(path, `is not a number from 0 to ${MAX_COUNT}`);
    return 0;
  }

  /** A cost as decimal USD, from a number or a text in units of 10^-digits dollars; undefined where it is absent. */
  cost(digits: number, ...path: string[]): string | undefined {
    const value = this.at(path);
    if (isAbsent(value)) return undefined;
    const figure = typeof value === 'number' || typeof value === 'string' ? String(value) : '';
    if (isFigure(figure) && Number(figure) <= Number(formatMoney(MAX_AMOUNT)) * 10 ** digits)
      return decimalUsd(figure, -digits);
    this.fault(path, 'is not an amount from 0 to 1000000 USD');
    return undefined;
  }

  text(...path: string[]): string | undefined {
    const value = this.at(path);
    return typeof value === 'string' ? value : undefined;
  }

  /** true or false as the field has it; undefined where it says neither. */
  flag(...path: string[]): boolean | undefined {
    const value = this.at(path);
    return typeof value === 'boolean' ? value : undefined;
  }

  isObject(...path: string[]): boolean {
    return isFields(this.at(path));
  }

  /** The items of a list, each to be read by itself; their faults count here. */
  list(name: string): UsageReader[] {
    const value = this.own(name);
    if (isAbsent(value)) return [];
    if (!Array.isArray(value) || value.length > MOST_ITEMS) {
      this.fault([name], `is not a list of at most ${MOST_ITEMS} items`);
      return [];
    }
    return value.map((item: unknown, i) => {
      if (!isFields(item)) this.fault([name, String(i)], 'is not an object');
      return new UsageReader(isFields(item) ? item : {}, this.faults, `${this.pathOf([name, String(i)])}.`);
    });
  }

  fault(path: readonly string[], message: string): void {
    if (this.faults.length < MOST_FAULTS) this.faults.push({ path: this.pathOf(path), message });
  }

  private own(name: string): unknown {
    return Object.hasOwn(this.fields, name) ? this.fields[name] : undefined;
  }

  private at(path: readonly string[]): unknown {
    let value: unknown = this.fields;
    for (const name of path) {
      if (!isFields(value) || !Object.hasOwn(value, name)) return undefined;
      value = value[name];
    }
    return value;
  }

  private pathOf(path: readonly string[]): string {
    return this.within + path.join('.');
  }
}
