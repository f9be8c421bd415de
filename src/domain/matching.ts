import type { Attempt, Dimension } from './attempt';
import { valueOf } from './attempt';
import type { Bucket, Match } from './budget';

/** Whether an attempt meets a match; `model` compares the name sent and the catalogue's id for it (RULES 2.5). */
export function matches(match: Match, attempt: Attempt): boolean {
  if (match.provider !== undefined && match.provider !== attempt.account.provider) return false;
  if (match.account !== undefined && match.account !== attempt.account.fingerprint) return false;
  if (match.model !== undefined && match.model !== attempt.model && match.model !== attempt.modelId)
    return false;
  if (match.workload !== undefined && match.workload !== attempt.workload) return false;
  if (match.subject !== undefined && match.subject !== attempt.subject) return false;
  if (match.conversation !== undefined && match.conversation !== attempt.conversation) return false;
  if (match.tags) {
    for (const key of Object.keys(match.tags)) {
      if (valueOf(attempt, `tag.${key}`) !== match.tags[key]) return false;
    }
  }
  return true;
}

/** The index of the first set-aside an attempt belongs to, or −1. */
export function setAsideOf(setAsides: readonly { readonly match: Match }[], attempt: Attempt): number {
  for (let i = 0; i < setAsides.length; i += 1) {
    const setAside = setAsides[i];
    if (setAside && matches(setAside.match, attempt)) return i;
  }
  return -1;
}

/** The bucket of an attempt in a budget with `each`, or undefined without. */
export function bucketOf(each: readonly Dimension[], attempt: Attempt): Bucket | undefined {
  if (each.length === 0) return undefined;
  const values: Record<string, string | null> = {};
  for (const dimension of each) values[dimension] = valueOf(attempt, dimension);
  return values;
}

/** A bucket's key: its values, dimensions sorted; a missing value differs from every text (NUL stops at the edge). */
export function bucketKey(bucket: Bucket | undefined): string {
  if (!bucket) return '';
  const dimensions = Object.keys(bucket);
  if (dimensions.length > 1) dimensions.sort();
  let key = '';
  for (const dimension of dimensions) key += `${bucket[dimension] ?? '\u0000'}\u0000`;
  return key;
}

const PLAIN_DIMENSIONS = ['provider', 'account', 'model', 'workload', 'subject', 'conversation'] as const;

/** All members of a group constrain the same dimensions, so that one look-up by their values finds them. */
interface Group<T> {
  readonly dimensions: readonly Dimension[];
  readonly byModel: boolean;
  readonly members: Map<string, Map<string, T>>;
}

function dimensionsOf(match: Match): Dimension[] {
  const dimensions: Dimension[] = PLAIN_DIMENSIONS.filter((dimension) => match[dimension] !== undefined);
  for (const key of Object.keys(match.tags ?? {}).sort()) dimensions.push(`tag.${key}`);
  return dimensions;
}

function keyOfMatch(match: Match): string {
  let key = '';
  for (const dimension of PLAIN_DIMENSIONS) {
    const value = match[dimension];
    if (value !== undefined) key += `${value}\u0000`;
  }
  for (const tag of Object.keys(match.tags ?? {}).sort()) key += `${match.tags?.[tag] ?? ''}\u0000`;
  return key;
}

/** Undefined where the attempt lacks one of the dimensions. */
function keyOfAttempt(dimensions: readonly Dimension[], attempt: Attempt, model: string): string | undefined {
  let key = '';
  for (const dimension of dimensions) {
    const value = dimension === 'model' ? model : valueOf(attempt, dimension);
    if (value === null) return undefined;
    key += `${value}\u0000`;
  }
  return key;
}

/**
 * Finds the budgets that match an attempt among ten thousand in a few look-ups: one a group of budgets that
 * constrain the same dimensions. Groups with tags are looked at only for attempts that carry their first tag.
 */
export class BudgetIndex<T extends { readonly id: string }> {
  private readonly untagged = new Map<string, Group<T>>();
  private readonly tagged = new Map<string, Map<string, Group<T>>>();

  add(match: Match, member: T): void {
    const dimensions = dimensionsOf(match);
    const groups = this.groupsFor(dimensions);
    const signature = dimensions.join('\u0000');
    let group = groups.get(signature);
    if (!group) {
      group = { dimensions, byModel: dimensions.includes('model'), members: new Map() };
      groups.set(signature, group);
    }
    const key = keyOfMatch(match);
    const members = group.members.get(key);
    if (members) members.set(member.id, member);
    else group.members.set(key, new Map([[member.id, member]]));
  }

  remove(match: Match, id: string): void {
    const dimensions = dimensionsOf(match);
    const groups = this.groupsFor(dimensions);
    const signature = dimensions.join('\u0000');
    const group = groups.get(signature);
    const key = keyOfMatch(match);
    const members = group?.members.get(key);
    members?.delete(id);
    if (members?.size === 0) group?.members.delete(key);
    if (group?.members.size === 0) groups.delete(signature);
  }

  /** The budgets that match, by id. */
  find(attempt: Attempt): T[] {
    const found: T[] = [];
    for (const group of this.untagged.values()) collect(group, attempt, found);
    if (attempt.tags && this.tagged.size > 0) {
      for (const tag of Object.keys(attempt.tags)) {
        const groups = this.tagged.get(tag);
        if (groups) for (const group of groups.values()) collect(group, attempt, found);
      }
    }
    if (found.length > 1) found.sort((a, b) => (a.id < b.id ? -1 : 1));
    return found;
  }

  private groupsFor(dimensions: readonly Dimension[]): Map<string, Group<T>> {
    const tag = dimensions.find((dimension) => dimension.startsWith('tag.'))?.slice(4);
    if (tag === undefined) return this.untagged;
    let groups = this.tagged.get(tag);
    if (!groups) {
      groups = new Map();
      this.tagged.set(tag, groups);
    }
    return groups;
  }
}

function collect<T>(group: Group<T>, attempt: Attempt, into: T[]): void {
  const key = keyOfAttempt(group.dimensions, attempt, attempt.model);
  if (key === undefined) return;
  const members = group.members.get(key);
  if (members) for (const member of members.values()) into.push(member);
  if (!group.byModel || attempt.modelId === undefined || attempt.modelId === attempt.model) return;
  const byId = group.members.get(keyOfAttempt(group.dimensions, attempt, attempt.modelId) ?? '');
  if (byId) for (const member of byId.values()) into.push(member);
}
