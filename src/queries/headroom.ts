import { Injectable } from '@nestjs/common';
import { Query, QueryHandler } from '@nestjs/cqrs';
import type { IQueryHandler } from '@nestjs/cqrs';
import type { Attempt, Fingerprint } from '../domain/attempt';
import type { Bucket, BudgetBalance, BudgetDefinition, Match } from '../domain/budget';
import { MAX_BUDGETS, balance, roomIn } from '../domain/evaluate';
import type { RefusalCode } from '../domain/events';
import { BudgetIndex } from '../domain/matching';
import { formatMoney, money } from '../domain/money';
import { emptyBucket, placeIn, toBudgetPlace, within } from '../domain/places';
import type { Place } from '../domain/places';
import { DEFAULT_SETTINGS } from '../domain/settings';
import type { Enforcement, Settings } from '../domain/settings';
import { budgetState } from '../domain/state';
import type { BudgetState } from '../domain/state';
import { windowKey } from '../domain/windows';
import type { BucketNumbers, StandingBudget } from '../read-models/budgets/budget-queries';
import { LedgerReads } from './ledger-reads';

/** What a check would be about; what is left out meets only budgets that do not ask for it. */
export type HeadroomQuestion = Match;

/** One matching budget; `remaining` leaves out what is set aside for others and not used by them. */
export type BudgetRoom = BudgetBalance & {
  readonly mode: BudgetDefinition['mode'];
  /** Its fixed period is over: an `enforce` budget refuses everything. */
  readonly ended?: true;
};

export interface Headroom {
  readonly budgets: readonly BudgetRoom[];
  /** The largest estimate that every `enforce` budget would let pass, decimal USD; absent where there are none. */
  readonly largestAmount?: string;
  /** Why nothing would pass, whatever its amount. */
  readonly reasons?: readonly RefusalCode[];
  readonly unbudgeted?: true;
  /** `observe`: nothing is refused, whatever the numbers say. */
  readonly enforcement: Enforcement;
}

export class GetHeadroom extends Query<Headroom> {
  constructor(
    readonly ledger: string,
    readonly question: HeadroomQuestion,
    readonly after?: number,
  ) {
    super();
  }
}

interface Indexed {
  readonly mark: string;
  readonly index: BudgetIndex<BudgetState>;
}

/** Ledgers whose budgets are kept in memory. */
const MOST_LEDGERS = 64;
/** Budgets may change between two questions to the database. */
const MAX_TRIES = 3;

/** Which budgets match, from the read model's definitions: built anew only when one of them changes. */
@Injectable()
export class BudgetIndexes {
  private readonly known = new Map<string, Indexed>();

  constructor(private readonly reads: LedgerReads) {}

  async of(ledger: string): Promise<Indexed> {
    const mark = await this.reads.budgets.lastChange(ledger);
    const known = this.known.get(ledger);
    if (known?.mark === mark) return known;
    const index = new BudgetIndex<BudgetState>();
    for (const standing of await this.reads.budgets.standing(ledger)) {
      index.add(standing.definition.match, withoutNumbers(standing));
    }
    const indexed = { mark, index };
    this.known.delete(ledger);
    this.known.set(ledger, indexed);
    const [oldest] = this.known.keys();
    if (this.known.size > MOST_LEDGERS && oldest !== undefined) this.known.delete(oldest);
    return indexed;
  }
}

@QueryHandler(GetHeadroom)
export class GetHeadroomHandler implements IQueryHandler<GetHeadroom> {
  constructor(
    private readonly reads: LedgerReads,
    private readonly indexes: BudgetIndexes,
  ) {}

  async execute({ ledger, question, after }: GetHeadroom): Promise<Headroom> {
    await this.reads.seen(ledger, ['budgets', 'settings'], after);
    const settings = (await this.reads.settings.settings(ledger)) ?? DEFAULT_SETTINGS;
    const nowMs = this.reads.services.now();
    const of = this.attempt(question, nowMs);
    for (let tries = 1; ; tries += 1) {
      const { mark, index } = await this.indexes.of(ledger);
      const places = index
        .find(of)
        .map((budget) => namedOnly(placeIn(budget, of, settings.timezone, nowMs)))
        .filter(({ span }) => span.fromMs === undefined || span.fromMs <= nowMs);
      const shown = places.slice(0, MAX_BUDGETS);
      const numbers = await this.reads.budgets.bucketBalances(ledger, shown.map(toBudgetPlace));
      if (tries < MAX_TRIES && mark !== (await this.reads.budgets.lastChange(ledger))) continue;
      const rooms = shown.map((place, i) => roomOf(withNumbers(place, numbers[i]), nowMs));
      return headroom(rooms, places.length, settings, question.workload);
    }
  }

  private attempt(question: HeadroomQuestion, nowMs: number): Attempt {
    const { provider = '', account = '', model = '', ...rest } = question;
    const listed = model === '' ? undefined : this.reads.services.catalogue(provider, model, nowMs);
    return {
      ...rest,
      account: { provider, fingerprint: account as Fingerprint },
      model,
      modelId: listed?.price.model,
    };
  }
}

interface Room {
  readonly shown: BudgetRoom;
  readonly room: bigint;
}

function headroom(
  rooms: readonly Room[],
  matching: number,
  settings: Settings,
  workload: string | undefined,
): Headroom {
  const reasons: RefusalCode[] = [];
  if (matching === 0 && settings.onNoBudget === 'refuse') reasons.push('no_budget');
  if (matching > MAX_BUDGETS) reasons.push('too_many_budgets');
  const enforced = rooms.filter(({ shown }) => shown.mode === 'enforce');
  if (enforced.some(({ shown }) => shown.ended)) reasons.push('budget_ended');
  let largest = enforced[0]?.room;
  for (const { room } of enforced) if (largest !== undefined && room < largest) largest = room;
  if (reasons.length > 0 || (largest !== undefined && largest < 0n)) largest = 0n;
  const own = workload === undefined ? undefined : settings.workloads[workload];
  return {
    budgets: rooms.map(({ shown }) => shown),
    ...(largest !== undefined && { largestAmount: formatMoney(largest) }),
    ...(reasons.length > 0 && { reasons }),
    ...(matching === 0 && { unbudgeted: true }),
    enforcement: own?.enforcement ?? settings.enforcement,
  };
}

function roomOf(place: Place, nowMs: number): Room {
  const hasEnded = !within(place.span, nowMs);
  const { mode } = place.budget.definition;
  return {
    shown: { ...balance(place, money(0n)), mode, ...(hasEnded && { ended: true }) },
    room: roomIn(place),
  };
}

/** A value that was left out is none, and not an empty one: its bucket is the shared one. */
function namedOnly(place: Place): Place {
  if (!place.values) return place;
  const values: Bucket = Object.fromEntries(
    Object.entries(place.values).map(([dimension, value]) => [dimension, value === '' ? null : value]),
  );
  return { ...place, values };
}

const withoutNumbers = ({ definition, generation }: StandingBudget): BudgetState =>
  budgetState(definition, generation, -1, 0, new Map());

/** The place in a budget of its own that holds what the read model counted, so that the domain's arithmetic is asked. */
function withNumbers(place: Place, numbers: BucketNumbers | undefined): Place {
  const bucket = emptyBucket(place.budget, place.values);
  bucket.charged = money(numbers?.charged ?? 0n);
  bucket.held = money(numbers?.held ?? 0n);
  for (const { index, charged, held } of numbers?.setAsides ?? []) {
    bucket.setAsides[index] = { charged: money(charged), held: money(held) };
  }
  const window = {
    span: place.span,
    buckets: new Map([[place.key, bucket]]),
    holds: 0,
    fullAlerted: false,
  };
  return { ...place, budget: { ...place.budget, windows: new Map([[windowKey(place.span), window]]) } };
}
