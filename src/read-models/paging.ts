export const DEFAULT_LIMIT = 100;
export const MAX_LIMIT = 1_000;

export interface PageRequest {
  /** Opaque: `nextCursor` of the page before. */
  readonly cursor?: string;
  /** Default 100, at most 1,000. */
  readonly limit?: number;
}

export interface Page<T> {
  readonly data: readonly T[];
  readonly nextCursor?: string;
}

/** The cursor was not made by this service, or for another list. */
export class InvalidCursorError extends Error {
  override readonly name = 'InvalidCursorError';
}

export const limitOf = ({ limit = DEFAULT_LIMIT }: PageRequest): number =>
  Math.min(Math.max(Math.trunc(limit), 1), MAX_LIMIT);

export const encodeCursor = (key: readonly string[]): string =>
  Buffer.from(JSON.stringify(key)).toString('base64url');

/** The key of the last row of the page before, or undefined on the first page. Throws InvalidCursorError. */
export function decodeCursor({ cursor }: PageRequest, parts: number): readonly string[] | undefined {
  if (cursor === undefined) return undefined;
  let key: unknown;
  try {
    key = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
  } catch {
    throw new InvalidCursorError('the cursor is not one of ours');
  }
  if (!Array.isArray(key) || key.length !== parts || !key.every((part) => typeof part === 'string')) {
    throw new InvalidCursorError('the cursor belongs to another list');
  }
  return key;
}

/** A cursor of one revision. Throws InvalidCursorError. */
export function decodeRevision(request: PageRequest): number | undefined {
  const text = decodeCursor(request, 1)?.[0];
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new InvalidCursorError('the cursor belongs to another list');
  return Number(text);
}

/** Cuts `limit + 1` rows to a page. */
export function pageOf<R, T>(
  rows: readonly R[],
  limit: number,
  keyOf: (row: R) => readonly string[],
  view: (row: R) => T,
): Page<T> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const data = shown.map(view);
  return rows.length > limit && last !== undefined
    ? { data, nextCursor: encodeCursor(keyOf(last)) }
    : { data };
}
