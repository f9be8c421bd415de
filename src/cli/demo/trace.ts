import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { SingleBar } from 'cli-progress';
import { formatMoney } from '../../domain/money';
import { ANTHROPIC, MODEL } from './story';
import { eachAtMost } from './ledger-api';
import type { LedgerApi } from './ledger-api';
import type { Report } from './report';

export interface Row {
  readonly input: number;
  readonly output: number;
}

export interface Trace {
  readonly name: string;
  readonly rows: readonly Row[];
}

const KNOWN = 'azure-llm-2023-code.csv';

/** Reads a trace with the columns TIMESTAMP, ContextTokens, GeneratedTokens. Throws, naming the line, on anything else. */
export function readTrace(file: string): Trace {
  const [header, ...lines] = readFileSync(file, 'utf8').trim().split(/\r?\n/);
  const columns = (header ?? '').split(',');
  const input = columns.indexOf('ContextTokens');
  const output = columns.indexOf('GeneratedTokens');
  if (input < 0 || output < 0) throw new Error(`${file} has no columns ContextTokens and GeneratedTokens`);
  const rows = lines.map((line, i) => {
    const cells = line.split(',');
    const row = { input: Number(cells[input]), output: Number(cells[output]) };
    if (!Number.isSafeInteger(row.input) || !Number.isSafeInteger(row.output)) {
      throw new Error(`${file}, line ${i + 2}: token counts are not whole numbers`);
    }
    return row;
  });
  return { name: basename(file), rows };
}

/** The real trace where it lies beside the project, else rows made up the same way each time. */
export function defaultTrace(): Trace {
  const beside = `../shared/data/${KNOWN}`;
  if (existsSync(beside)) return readTrace(beside);
  const rows = Array.from({ length: 2_000 }, (_, i) => ({
    input: 100 + ((i * 7_919) % 7_400),
    output: 5 + ((i * 104_729) % 300),
  }));
  return { name: 'a made-up trace (give a real one with --trace FILE)', rows };
}

export interface Replayed {
  readonly base: string;
  /** Position of the last event, and a request from the middle. */
  readonly position: number;
  readonly middle: string;
  readonly expected: string;
}

/** Every row a check and its usage, 64 at once. */
export async function replay(api: LedgerApi, trace: Trace, report: Report): Promise<Replayed> {
  report.chapter(`3. Replaying ${trace.name}: ${trace.rows.length} requests, each a check and its usage`);
  const base = '/v1/ledgers/trace';
  await api.put(base, {});
  await api.put(`${base}/budgets/trace-day`, {
    match: { provider: 'anthropic' },
    window: 'lifetime',
    limit: '1000',
  });
  const started = process.hrtime.bigint();
  const bar = progress(trace.rows.length);
  let position = 0;
  let failed = 0;
  await eachAtMost(trace.rows, 64, async (row, i) => {
    const done = await one(api, base, row, i);
    if (done === undefined) failed += 1;
    else position = Math.max(position, done);
    bar?.increment();
  });
  bar?.stop();
  const seconds = Number(process.hrtime.bigint() - started) / 1e9;
  report.line(`  ${trace.rows.length} checks and ${trace.rows.length} records in ${seconds.toFixed(1)} s`);
  report.expect('requests that failed', failed, 0);
  const expected = exactCost(trace.rows);
  const { body } = await api.get(`${base}/budgets?after=${position}`);
  const budgets = (body['data'] ?? []) as { id: string; current: { charged: string; held: string } }[];
  report.expect('charged', budgets[0]?.current.charged, expected);
  report.expect('still held', budgets[0]?.current.held, '0');
  if (trace.name === KNOWN) report.expect('known cost of this trace', expected, '19.289454');
  return { base, position, middle: `row-${Math.floor(trace.rows.length / 2)}`, expected };
}

/** The position its usage was booked at, or undefined where something was refused. */
async function one(api: LedgerApi, base: string, row: Row, i: number): Promise<number | undefined> {
  const asked = await api.post(`${base}/check-budget`, {
    requestId: `row-${i}`,
    account: ANTHROPIC,
    model: MODEL,
    workload: 'code',
    estimate: { inputTokens: row.input, maxOutputTokens: row.output },
  });
  if (asked.status !== 200) return undefined;
  const reservation = asked.body['reservation'] as { id: string };
  const booked = await api.post(`${base}/record-usage`, {
    reservationId: reservation.id,
    outcome: 'succeeded',
    usage: { inputTokens: row.input, outputTokens: row.output },
  });
  return booked.status === 200 ? Number(booked.body['position']) : undefined;
}

/** 1 USD a million in, 5 USD a million out: 1,000 and 5,000 nano-dollars a token. Computed here, not asked for. */
function exactCost(rows: readonly Row[]): string {
  let nanos = 0n;
  for (const row of rows) nanos += BigInt(row.input) * 1_000n + BigInt(row.output) * 5_000n;
  return formatMoney(nanos);
}

function progress(total: number): SingleBar | undefined {
  if (!process.stdout.isTTY) return undefined;
  const bar = new SingleBar({
    format: '  {bar} {value}/{total}  {duration_formatted}',
    stream: process.stdout,
  });
  bar.start(total, 0);
  return bar;
}
