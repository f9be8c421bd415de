import type { LedgerApi } from './ledger-api';
import type { Report } from './report';
import type { Replayed } from './trace';

interface Total {
  readonly charged: string;
  readonly held: string;
}

/** What an auditor asks: how did it stand in the middle, is the chain whole, do the two sums agree. */
export async function audit(
  api: LedgerApi,
  { base, position, middle, expected }: Replayed,
  report: Report,
): Promise<void> {
  report.chapter('4. Looking back');
  const history = await api.get(`${base}/events?requestId=${middle}`);
  const moment = ((history.body['data'] ?? []) as { at: string; revision: number }[])[0];
  if (!moment) throw new Error(`no events of ${middle}`);
  const state = await api.get(`${base}/state?at=${encodeURIComponent(moment.at)}`);
  const then = state.body['totals'] as Total | undefined;
  report.line(
    `  at ${moment.at} (revision ${String(state.body['revision'])}): charged ${then?.charged}, held ${then?.held}`,
  );
  report.expect('state in the middle answered (HTTP)', state.status, 200);
  const verify = await api.get(`${base}/verify?after=${position}`);
  const head = verify.body['head'] as { revision: number; hash: string };
  report.line(
    `  hash chain of ${String(verify.body['events'])} events, head ${head.hash.slice(0, 16)}… at revision ${head.revision}`,
  );
  report.expect('verified', verify.body['ok'], true);
  const totals = verify.body['totals'] as { readModel: Total; fold: Total };
  report.line(`  ${'total'.padEnd(10)}${'read model'.padStart(14)}${'fresh fold'.padStart(14)}`);
  for (const name of ['charged', 'held'] as const) {
    report.line(
      `  ${name.padEnd(10)}${totals.readModel[name].padStart(14)}${totals.fold[name].padStart(14)}`,
    );
  }
  report.expect(
    'both are what the trace costs',
    `${totals.readModel.charged} ${totals.fold.charged}`,
    `${expected} ${expected}`,
  );
}
