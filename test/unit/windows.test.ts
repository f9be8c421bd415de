import fc from 'fast-check';
import { dayOf, isTimezone, toTime, windowAt } from '../../src/domain/windows';

const at = (time: string) => Date.parse(time);
const span = (rule: 'day' | 'week' | 'month', zone: string, time: string) => {
  const { fromMs, toMs } = windowAt(rule, zone, at(time));
  return [toTime(fromMs ?? NaN), toTime(toMs ?? NaN)];
};

describe('windows', () => {
  it('a day begins at midnight of the ledger’s zone, not of UTC (casebook 26)', () => {
    expect(span('day', 'Europe/Berlin', '2026-07-01T22:30:00Z')).toEqual([
      '2026-07-01T22:00:00.000Z',
      '2026-07-02T22:00:00.000Z',
    ]);
    expect(dayOf('Europe/Berlin', at('2026-07-01T22:30:00Z'))).toBe('2026-07-02');
  });

  it('a day of 23 hours when clocks go forward, of 25 when they go back', () => {
    expect(span('day', 'Europe/Berlin', '2026-03-29T12:00:00Z')).toEqual([
      '2026-03-28T23:00:00.000Z',
      '2026-03-29T22:00:00.000Z',
    ]);
    expect(span('day', 'Europe/Berlin', '2026-10-25T12:00:00Z')).toEqual([
      '2026-10-24T22:00:00.000Z',
      '2026-10-25T23:00:00.000Z',
    ]);
  });

  it('a day whose midnight does not exist begins at its first instant', () => {
    // Cairo moved its clocks at 00:00 on 2024-04-26: the day begins at 01:00 local.
    expect(span('day', 'Africa/Cairo', '2024-04-26T12:00:00Z')).toEqual([
      '2024-04-25T22:00:00.000Z',
      '2024-04-26T21:00:00.000Z',
    ]);
  });

  it('a day whose midnight comes twice begins at the first one', () => {
    // Havana went from 01:00 back to 00:00 on 2024-11-03.
    expect(span('day', 'America/Havana', '2024-11-03T12:00:00Z')).toEqual([
      '2024-11-03T04:00:00.000Z',
      '2024-11-04T05:00:00.000Z',
    ]);
  });

  it('weeks begin on Monday, months on the first', () => {
    expect(span('week', 'UTC', '2026-11-29T23:59:59.999Z')).toEqual([
      '2026-11-23T00:00:00.000Z',
      '2026-11-30T00:00:00.000Z',
    ]);
    expect(span('month', 'America/New_York', '2026-11-15T00:00:00Z')).toEqual([
      '2026-11-01T04:00:00.000Z',
      '2026-12-01T05:00:00.000Z',
    ]);
  });

  it('fixed windows and lifetimes are what they say', () => {
    const rule = { from: '2026-01-01T00:00:00Z', to: '2026-02-01T00:00:00Z' };
    expect(windowAt(rule, 'UTC', 0)).toEqual({ kind: 'fixed', fromMs: at(rule.from), toMs: at(rule.to) });
    expect(windowAt('lifetime', 'UTC', 0)).toEqual({ kind: 'lifetime' });
  });

  it('every moment is in exactly one window, and windows meet without a gap', () => {
    const zones = [
      'UTC',
      'Europe/Berlin',
      'America/New_York',
      'Africa/Cairo',
      'Asia/Kathmandu',
      'Pacific/Apia',
      'America/Havana',
    ];
    fc.assert(
      fc.property(
        fc.constantFrom('day', 'week', 'month'),
        fc.constantFrom(...zones),
        fc.integer({ min: at('2010-01-01T00:00:00Z'), max: at('2035-01-01T00:00:00Z') }),
        (rule, zone, ms) => {
          const { fromMs = NaN, toMs = NaN } = windowAt(rule, zone, ms);
          expect(fromMs <= ms && ms < toMs).toBe(true);
          expect(windowAt(rule, zone, toMs).fromMs).toBe(toMs);
          expect(windowAt(rule, zone, fromMs - 1).toMs).toBe(fromMs);
        },
      ),
      { numRuns: 400 },
    );
  });

  it('knows timezones', () => {
    expect(isTimezone('Europe/Berlin')).toBe(true);
    expect(isTimezone('Mars/Olympus')).toBe(false);
  });
});
