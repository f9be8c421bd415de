import { formatMoney, parseMoney } from '../../domain/money';
import type { LedgerApi } from './ledger-api';
import type { Report } from './report';

/** Demo accounts: fingerprints of keys that do not exist. */
export const ANTHROPIC = { provider: 'anthropic', fingerprint: 'a1'.repeat(32) };
export const MODEL = 'claude-haiku-4-5';

const TURNS = 60;
const FIRST_INPUT = 3_414;
const LARGEST_INPUT = 55_586;
const OUTPUT = 600;

/** The input of each turn of a conversation that re-sends its whole history: 29,500 tokens on average. */
export const conversation = (): number[] =>
  Array.from(
    { length: TURNS },
    (_, turn) => FIRST_INPUT + Math.round(((LARGEST_INPUT - FIRST_INPUT) * turn) / (TURNS - 1)),
  );

/** Per model and day, a provider's daily allowance with a part for reports, a fixed period, an allowance a visitor. */
const POLICY: Record<string, unknown> = {
  'chat-haiku-day': { match: { workload: 'chat', model: MODEL }, window: 'day', limit: '0.80' },
  'anthropic-day': {
    match: { provider: 'anthropic' },
    window: 'day',
    limit: '2.00',
    setAsides: [{ match: { workload: 'report' }, amount: '1.00' }],
  },
  'visitor-day': { match: { workload: 'chat' }, each: ['subject'], window: 'day', limit: '1.50' },
  'launch-period': {
    match: {},
    window: { from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' },
    limit: '42.00',
  },
};

async function open(api: LedgerApi, ledger: string): Promise<string> {
  const base = `/v1/ledgers/${ledger}`;
  await api.put(base, {});
  for (const [id, budget] of Object.entries(POLICY)) await api.put(`${base}/budgets/${id}`, budget);
  return base;
}

const check = (requestId: string, inputTokens: number, workload: string, rest: object = {}) => ({
  requestId,
  account: ANTHROPIC,
  model: MODEL,
  workload,
  ...(workload === 'chat' && { subject: 'visitor-1', conversation: 'the-long-one' }),
  estimate: { inputTokens },
  ...rest,
});

export async function tellStory(api: LedgerApi, report: Report): Promise<void> {
  const turns = conversation();
  const average = Math.round(turns.reduce((sum, input) => sum + input, 0) / turns.length);
  report.chapter('1. One conversation that re-sends its whole history');
  report.line(
    `  ${turns.length} turns on ${MODEL}, ${average} input tokens on average, ${LARGEST_INPUT} at the largest`,
  );
  const before = await checkedOnce(api, turns, report);
  const after = await checkedAlways(api, turns, report);
  report.expect('the second spent less than the first', parseMoney(after) < parseMoney(before), true);
}

/** As the product did it: the cap is looked at when the conversation starts, and never again. */
async function checkedOnce(api: LedgerApi, turns: readonly number[], report: Report): Promise<string> {
  const base = await open(api, 'story-checked-once');
  const asked = await api.post(
    `${base}/check-budget`,
    check('start', turns[0] ?? 0, 'chat', { reserve: false }),
  );
  let spent = 0n;
  let position: unknown = 0;
  for (const [turn, inputTokens] of turns.entries()) {
    const { body } = await api.post(`${base}/record-usage`, {
      usageId: `turn-${turn + 1}`,
      account: ANTHROPIC,
      model: MODEL,
      workload: 'chat',
      subject: 'visitor-1',
      conversation: 'the-long-one',
      outcome: 'succeeded',
      usage: { inputTokens, outputTokens: OUTPUT },
    });
    spent += parseMoney(String(body['charged']));
    position = body['position'];
  }
  const chat = await current(api, base, 'chat-haiku-day', position);
  report.line(
    `  checked once at the start (${String(asked.body['decision'])}): all ${turns.length} turns ran, ${formatMoney(spent)} USD spent`,
  );
  report.line(
    `  budget chat-haiku-day: limit ${chat.limit}, charged ${chat.charged}, remaining ${chat.remaining}`,
  );
  report.expect('its cap was overrun and nobody was told', chat.remaining.startsWith('-'), true);
  return formatMoney(spent);
}

/** A check before every request: a reservation, and a charge in its place. */
async function checkedAlways(api: LedgerApi, turns: readonly number[], report: Report): Promise<string> {
  const base = await open(api, 'story-checked-always');
  let spent = 0n;
  let stopped: Record<string, unknown> | undefined;
  let ran = 0;
  for (const [turn, inputTokens] of turns.entries()) {
    const asked = await api.post(`${base}/check-budget`, check(`turn-${turn + 1}`, inputTokens, 'chat'));
    if (asked.status === 402) {
      stopped = asked.body;
      break;
    }
    const reservation = asked.body['reservation'] as { id: string };
    const { body } = await api.post(`${base}/record-usage`, {
      reservationId: reservation.id,
      outcome: 'succeeded',
      usage: { inputTokens, outputTokens: OUTPUT },
    });
    spent += parseMoney(String(body['charged']));
    ran += 1;
  }
  const reasons = (stopped?.['reasons'] ?? []) as Record<string, string>[];
  report.line(`  checked before every request: stopped at turn ${ran + 1}, ${formatMoney(spent)} USD spent`);
  for (const reason of reasons) {
    report.line(
      `  refused by ${reason['budget']}: limit ${reason['limit']}, charged ${reason['charged']}, held ${reason['held']}, remaining ${reason['remaining']}`,
    );
  }
  report.expect('refused with', stopped?.['code'], 'budget_exceeded');
  report.expect('by', reasons.map((reason) => reason['budget']).join(', '), 'chat-haiku-day');
  report.expect('the cap held', spent <= parseMoney('0.80'), true);
  await reportsStillRun(api, base, report);
  return formatMoney(spent);
}

async function reportsStillRun(api: LedgerApi, base: string, report: Report): Promise<void> {
  const { status, body } = await api.post(`${base}/check-budget`, check('report-1', 900_000, 'report'));
  const budgets = (body['budgets'] ?? []) as Record<string, string>[];
  const allowance = budgets.find((budget) => budget['id'] === 'anthropic-day');
  report.expect('a report of 900,000 tokens still had its set-aside (HTTP)', status, 200);
  report.line(
    `  anthropic-day after it: held ${allowance?.['held']}, remaining for reports ${allowance?.['remaining']}`,
  );
}

export interface Balance {
  readonly limit: string;
  readonly charged: string;
  readonly held: string;
  readonly remaining: string;
}

/** A budget's current numbers, once the read model has seen a position. */
export async function current(api: LedgerApi, base: string, id: string, after: unknown): Promise<Balance> {
  const { body } = await api.get(`${base}/budgets?after=${String(after)}`);
  const budgets = (body['data'] ?? []) as { id: string; current: Balance }[];
  const found = budgets.find((budget) => budget.id === id);
  if (!found) throw new Error(`no budget ${id} in ${JSON.stringify(body)}`);
  return found.current;
}
