import type { z } from 'zod';

export interface Fault {
  /** Where, as a dotted path; never a value. */
  readonly path: string;
  readonly message: string;
}

/** Paths and messages of a zod error. Unknown fields are named by count only where their name could be a secret. */
export function faultsOf(error: z.ZodError): Fault[] {
  return error.issues.flatMap((issue): Fault[] => {
    const path = issue.path.map(String).join('.');
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({
        path: path === '' ? shown(key) : `${path}.${shown(key)}`,
        message: 'is not a known field',
      }));
    }
    return [{ path, message: issue.message }];
  });
}

/** A field's name, unless it looks like anything but one: it may be a pasted key. */
const shown = (key: string): string =>
  /^[A-Za-z][A-Za-z0-9_]{0,39}$/.test(key) && !/^sk/i.test(key) ? key : '(unknown field)';
