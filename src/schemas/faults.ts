import type { z } from 'zod';
import { beginsLikeKey } from '../domain/key-prefix';

export interface Fault {
  /** Where, as a dotted path; never a value. */
  readonly path: string;
  readonly message: string;
}

/** Every fault is listed, but a body of nothing but faults is not answered with a longer one. */
export const MAX_FAULTS = 200;

/** Paths and messages of a zod error, without any value: a name that could be a pasted key is left out too. */
export function faultsOf(error: z.ZodError): Fault[] {
  const faults = error.issues.flatMap((issue): Fault[] => {
    const path = issue.path.map((part) => (typeof part === 'number' ? part : shown(String(part)))).join('.');
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({
        path: path === '' ? shown(key) : `${path}.${shown(key)}`,
        message: 'is not a known field',
      }));
    }
    return [{ path, message: messageOf(issue) }];
  });
  const more = faults.length - MAX_FAULTS;
  return more > 0 ? [...faults.slice(0, MAX_FAULTS), { path: '', message: `${more} faults more` }] : faults;
}

function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_key') return issue.issues[0]?.message ?? 'is not a name that is allowed here';
  if (issue.code !== 'invalid_type') return issue.message;
  return issue.message.endsWith('received undefined') ? 'is missing' : `is not of type ${issue.expected}`;
}

const NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,39}$/;
/** A run of letters and digits longer than any field's name. */
const LONG_RUN = /[A-Za-z0-9]{25}/;

/** A field's name, unless it looks like anything but one: it may be a pasted key. */
const shown = (name: string): string =>
  NAME.test(name) && !beginsLikeKey(name) && !LONG_RUN.test(name) ? name : '(unknown field)';
