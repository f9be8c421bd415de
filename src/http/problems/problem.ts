import type { z } from 'zod';
import { faultsOf } from '../../schemas/faults';
import type { Fault } from '../../schemas/faults';

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
  if (isTooDeep(input)) throw invalidRequest([{ path: '', message: `is nested deeper than ${DEEPEST}` }]);
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  throw invalidRequest(faultsOf(result.error));
}

/** Deeper than any provider's object; far below where recursion over a body would overflow. */
const DEEPEST = 64;

function isTooDeep(input: unknown): boolean {
  let level: unknown[] = [input];
  for (let depth = 0; depth <= DEEPEST; depth += 1) {
    level = level.flatMap((value): unknown[] =>
      typeof value === 'object' && value !== null ? Object.values(value) : [],
    );
    if (level.length === 0) return false;
  }
  return true;
}
