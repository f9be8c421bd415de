import type { Account } from './attempt';
import type { AttemptRecord } from './state';

/** The attempt with its request, as events carry it. */
export function attemptData(of: AttemptRecord) {
  return {
    account: accountData(of.account),
    attempt: of.attempt,
    conversation: of.conversation,
    job: of.job,
    model: of.model,
    modelId: of.modelId,
    requestId: of.requestId,
    serviceTier: of.serviceTier,
    subject: of.subject,
    tags: of.tags,
    workload: of.workload,
  };
}

/** An account with its keys in order, whatever order it was given in. */
export const accountData = ({ fingerprint, provider }: Account): Account => ({ fingerprint, provider });
