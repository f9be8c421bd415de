import type { Account, Tags } from '../../domain/attempt';
import type { BudgetPlace } from '../../domain/budget';
import type { Quality, Reason } from '../../domain/events';
import { formatMoney } from '../../domain/money';
import type { Usage } from '../../domain/usage';
import type { AttemptState, ChargeDetails, CheckDetails } from './attempt-row';

/** Amounts decimal USD, times RFC 3339 UTC. */
export interface ChargeView extends ChargeDetails {
  readonly id: string;
  readonly cost: string;
  readonly quality: Quality;
  readonly usage: Usage;
  readonly unpriced?: true;
}

/** One attempt: what was asked, held, refused, charged. */
export interface AttemptView extends CheckDetailsView {
  /** Of the event that began it. */
  readonly revision: number;
  readonly state: AttemptState;
  readonly requestId?: string;
  readonly attempt?: number;
  readonly reservationId?: string;
  readonly usageId?: string;
  readonly account: Account;
  readonly model: string;
  readonly modelId?: string;
  readonly workload?: string;
  readonly subject?: string;
  readonly conversation?: string;
  readonly tags?: Tags;
  readonly job?: string;
  readonly serviceTier?: string;
  /** Held, refused or asked for. */
  readonly amount?: string;
  /** The moment whose windows it counts in, and its day in the ledger's timezone. */
  readonly countedAt: string;
  readonly day: string;
  readonly expiresAt?: string;
  readonly code?: string;
  readonly reasons?: readonly Reason[];
  readonly budgets?: readonly BudgetPlace[];
  readonly charge?: ChargeView;
  /** Every event about it. */
  readonly revisions: readonly number[];
}

type CheckDetailsView = Omit<CheckDetails, 'usage'> & { readonly estimate?: Usage };

/** What `VIEW_COLUMNS` selects; int8 arrives as text. */
export interface StoredAttempt {
  readonly revision: string;
  readonly state: AttemptState;
  readonly request_id: string | null;
  readonly attempt: number | null;
  readonly reservation_id: string | null;
  readonly usage_id: string | null;
  readonly provider: string;
  readonly account: Account['fingerprint'];
  readonly model: string;
  readonly model_id: string | null;
  readonly workload: string | null;
  readonly subject: string | null;
  readonly conversation: string | null;
  readonly tags: Tags | null;
  readonly job: string | null;
  readonly service_tier: string | null;
  readonly amount: string | null;
  readonly counted_at: Date;
  readonly day: string;
  readonly expires_at: Date | null;
  readonly code: string | null;
  readonly reasons: readonly Reason[] | null;
  readonly details: CheckDetails | null;
  readonly charge_id: string | null;
  readonly cost: string | null;
  readonly quality: Quality | null;
  readonly usage: Usage | null;
  readonly unpriced: boolean;
  readonly charge: ChargeDetails | null;
  readonly budgets: readonly BudgetPlace[] | null;
  readonly revisions: readonly string[];
}

export const VIEW_COLUMNS = `revision, state, request_id, attempt, reservation_id, usage_id, provider, account, model, model_id,
  workload, subject, conversation, tags, job, service_tier, amount, counted_at, day::text AS day, expires_at, code, reasons,
  details, charge_id, cost, quality, usage, unpriced, charge, budgets, revisions`;

export function viewOf(row: StoredAttempt): AttemptView {
  const { usage: estimate, ...details } = row.details ?? {};
  return present({
    ...details,
    estimate,
    revision: Number(row.revision),
    state: row.state,
    requestId: row.request_id ?? undefined,
    attempt: row.attempt ?? undefined,
    reservationId: row.reservation_id ?? undefined,
    usageId: row.usage_id ?? undefined,
    account: { provider: row.provider, fingerprint: row.account },
    model: row.model,
    modelId: row.model_id ?? undefined,
    workload: row.workload ?? undefined,
    subject: row.subject ?? undefined,
    conversation: row.conversation ?? undefined,
    tags: row.tags ?? undefined,
    job: row.job ?? undefined,
    serviceTier: row.service_tier ?? undefined,
    amount: row.amount === null ? undefined : formatMoney(BigInt(row.amount)),
    countedAt: row.counted_at.toISOString(),
    day: row.day,
    expiresAt: row.expires_at?.toISOString(),
    code: row.code ?? undefined,
    reasons: row.reasons ?? undefined,
    budgets: row.budgets ?? undefined,
    charge: chargeOf(row),
    revisions: row.revisions.map(Number),
  });
}

function chargeOf(row: StoredAttempt): ChargeView | undefined {
  const { charge_id: id, cost, quality, usage } = row;
  if (id === null || cost === null || quality === null || usage === null) return undefined;
  const unpriced = row.unpriced ? (true as const) : undefined;
  return present({
    ...row.charge,
    id,
    cost: formatMoney(BigInt(cost)),
    quality,
    usage,
    unpriced,
  } as ChargeView);
}

/** Without the fields that are undefined. */
function present<T extends object>(view: T): T {
  return Object.fromEntries(Object.entries(view).filter(([, value]) => value !== undefined)) as T;
}
