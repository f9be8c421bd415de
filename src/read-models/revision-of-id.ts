import { revisionIn } from '../domain/identifiers';

/** The revision that a reservation's or charge's id carries. Throws where the id was not minted by the ledger. */
export function revisionOfId(id: string): number {
  const revision = revisionIn(id);
  if (revision === undefined) throw new Error(`id ${id} carries no revision`);
  return revision;
}
