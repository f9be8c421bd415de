import type { AttemptRecord } from './state';

/** The attempt with its request, as events carry it. */
export function attemptData(of: AttemptRecord) {
  return {
    account: { fingerprint: of.account.fingerprint, provider: of.account.provider },
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
