/**
 * Canonical JSON (RFC 8785): keys sorted by UTF-16 code units, no spaces, numbers and strings as ECMAScript writes
 * them. Properties that are undefined are left out. Text must have no lone surrogates: those stop at the edge.
 */
export function canonicalJson(value: unknown): string {
  return isSorted(value) ? JSON.stringify(value) : written(value);
}

/** Whether every object in it has its keys in order already: one walk is cheaper than writing it by hand. */
function isSorted(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isSorted);
  let last: string | undefined;
  for (const key in value) {
    if (last !== undefined && key < last) return false;
    last = key;
    const inner = (value as Record<string, unknown>)[key];
    if (typeof inner === 'object' && inner !== null && !isSorted(inner)) return false;
  }
  return true;
}

/** By hand, because an object cannot be built with keys such as "10" and "9" in any order but its own. */
function written(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => written(item ?? null)).join(',')}]`;
  const members: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const member = (value as Record<string, unknown>)[key];
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${written(member)}`);
  }
  return `{${members.join(',')}}`;
}
