/** Revisions apart by no more than this are read in one go: a few events too many cost less than a question more. */
const GAP = 32;

export interface Run {
  readonly from: number;
  readonly to: number;
}

/** Ascending revisions as few stretches that hold them all. */
export function runsOf(revisions: readonly number[]): Run[] {
  const runs: { from: number; to: number }[] = [];
  for (const revision of revisions) {
    const last = runs.at(-1);
    if (last && revision - last.to <= GAP) last.to = revision;
    else runs.push({ from: revision, to: revision });
  }
  return runs;
}
