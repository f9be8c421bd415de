import type { z } from 'zod';

export interface Fault {
  /** Where, as a dotted path; never a value. */
  readonly path: string;
  readonly message: string;
}

/** An answer of RFC 9457, thrown anywhere in http/ and written by the one exception filter. */
export class Problem extends Error {
  override readonly name = 'Problem';
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    /** Members of the problem's own (reasons, faults, retryAt …). */
    readonly members: Readonly<Record<string, unknown>> = {},
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(detail);
  }
}

/** 400 with every fault at once. */
export const invalidRequest = (faults: readonly Fault[]): Problem =>
  new Problem(
    400,
    'invalid_request',
    `${faults.length} fault${faults.length === 1 ? '' : 's'} in the request`,
    { faults },
  );

/** Parses with a schema or throws a 400 that lists every fault by path and never echoes a value. */
export function parsed<S extends z.ZodType>(schema: S, input: unknown): z.output<S> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  throw invalidRequest(faultsOf(result.error));
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
