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
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  throw invalidRequest(faultsOf(result.error));
}

/** The names in a path and the body of one request: a 400 lists what is wrong with either. */
export function parsedRequest<P extends z.ZodType, S extends z.ZodType>(
  names: readonly [P, unknown],
  body: readonly [S, unknown],
): readonly [z.output<P>, z.output<S>] {
  const named = names[0].safeParse(names[1]);
  const read = body[0].safeParse(body[1]);
  if (named.success && read.success) return [named.data, read.data];
  throw invalidRequest([named, read].flatMap(({ error }) => (error ? faultsOf(error) : [])));
}
