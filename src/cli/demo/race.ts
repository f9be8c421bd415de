import { current, ANTHROPIC, MODEL } from './story';
import type { LedgerApi } from './ledger-api';
import type { Report } from './report';

const CHECKS = 200;
const ROOM_FOR = 46;

/** 200 checks at once against a budget with room for exactly 46 (casebook 1). */
export async function race(api: LedgerApi, report: Report): Promise<void> {
  report.chapter(`2. ${CHECKS} checks at once, room for ${ROOM_FOR}`);
  const base = '/v1/ledgers/race';
  await api.put(base, {});
  // 10,000 tokens in at 1 USD and 4,096 out at 5 USD a million: 0.03048 each.
  await api.put(`${base}/budgets/room`, { match: {}, window: 'day', limit: '1.40208' });
  const replies = await Promise.all(
    Array.from({ length: CHECKS }, (_, i) =>
      api.post(`${base}/check-budget`, {
        requestId: `race-${i}`,
        account: ANTHROPIC,
        model: MODEL,
        estimate: { inputTokens: 10_000 },
      }),
    ),
  );
  const allowed = replies.filter(({ status }) => status === 200).length;
  const refused = replies.filter(({ status }) => status === 402).length;
  const position = Math.max(...replies.map(({ body }) => Number(body['position'])));
  const balance = await current(api, base, 'room', position);
  report.expect('allowed', allowed, ROOM_FOR);
  report.expect('refused', refused, CHECKS - ROOM_FOR);
  report.expect('held', balance.held, '1.40208');
  report.expect('remaining', balance.remaining, '0');
}
