import { Temporal } from 'temporal-polyfill';
import type { Window, WindowRule } from './budget';

/** A concrete window in ms since epoch: `[fromMs, toMs)`; a lifetime has neither end. */
export interface TimeSpan {
  readonly kind: Window['kind'];
  readonly fromMs?: number;
  readonly toMs?: number;
}

const LIFETIME: TimeSpan = { kind: 'lifetime' };

export const toTime = (ms: number): string => new Date(ms).toISOString();
export const toMs = (time: string): number => Date.parse(time);

/** Whether the name is an IANA timezone this runtime knows. */
export function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/**
 * The window of a rule that contains a moment. Days, weeks (Monday) and months begin at the first instant of
 * their first day in the zone: 00:00, or later where daylight saving skips midnight. A fixed window is given as it
 * is, whether or not it contains the moment.
 */
export function windowAt(rule: WindowRule, timezone: string, atMs: number): TimeSpan {
  if (rule === 'lifetime') return LIFETIME;
  if (typeof rule === 'object') return { kind: 'fixed', fromMs: toMs(rule.from), toMs: toMs(rule.to) };
  return calendar(timezone).spanAt(rule, atMs);
}

const written = new WeakMap<TimeSpan, Window>();

/** As events name it; remembered, since the same few spans are named again and again. */
export function toWindow(span: TimeSpan): Window {
  let window = written.get(span);
  if (!window) {
    const { fromMs, toMs: endMs, kind } = span;
    const ends = fromMs !== undefined && endMs !== undefined;
    window = ends ? { from: toTime(fromMs), kind, to: toTime(endMs) } : { kind };
    written.set(span, window);
  }
  return window;
}

/** What tells windows of one generation apart: their beginning (a fixed `to` can be amended). */
export const windowKey = (span: TimeSpan): number => span.fromMs ?? 0;
export const keyOfWindow = (window: Window): number => (window.from === undefined ? 0 : toMs(window.from));

/** Whether another window follows when this one ends. */
export const recurs = (kind: Window['kind']): boolean =>
  kind === 'day' || kind === 'week' || kind === 'month';

/** The civil day of a moment in a zone, `YYYY-MM-DD`. */
export function dayOf(timezone: string, atMs: number): string {
  return calendar(timezone).dayOf(atMs);
}

type Recurring = 'day' | 'week' | 'month';

/** Remembers the last few windows it computed: the zone arithmetic costs microseconds, and nearly all moments are now. */
class Calendar {
  private readonly recent: Record<Recurring, TimeSpan[]> = { day: [], week: [], month: [] };
  private readonly days: { span: TimeSpan; name: string }[] = [];

  constructor(private readonly timezone: string) {}

  spanAt(rule: Recurring, atMs: number): TimeSpan {
    const known = this.recent[rule];
    for (const span of known) if (contains(span, atMs)) return span;
    const start = firstDay(
      rule,
      Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(this.timezone),
    );
    const next = start.add(STEP[rule]);
    const span: TimeSpan = {
      kind: rule,
      fromMs: start.toZonedDateTime(this.timezone).epochMilliseconds,
      toMs: next.toZonedDateTime(this.timezone).epochMilliseconds,
    };
    known.unshift(span);
    if (known.length > 4) known.pop();
    return span;
  }

  dayOf(atMs: number): string {
    for (const day of this.days) if (contains(day.span, atMs)) return day.name;
    const name = Temporal.Instant.fromEpochMilliseconds(atMs)
      .toZonedDateTimeISO(this.timezone)
      .toPlainDate()
      .toString();
    this.days.unshift({ span: this.spanAt('day', atMs), name });
    if (this.days.length > 4) this.days.pop();
    return name;
  }
}

const STEP: Record<Recurring, Temporal.DurationLike> = {
  day: { days: 1 },
  week: { weeks: 1 },
  month: { months: 1 },
};

function firstDay(rule: Recurring, moment: Temporal.ZonedDateTime): Temporal.PlainDate {
  const date = moment.toPlainDate();
  if (rule === 'day') return date;
  if (rule === 'week') return date.subtract({ days: date.dayOfWeek - 1 });
  return date.with({ day: 1 });
}

function contains(span: TimeSpan, atMs: number): boolean {
  return span.fromMs !== undefined && span.toMs !== undefined && span.fromMs <= atMs && atMs < span.toMs;
}

const calendars = new Map<string, Calendar>();

function calendar(timezone: string): Calendar {
  let found = calendars.get(timezone);
  if (!found) {
    found = new Calendar(timezone);
    calendars.set(timezone, found);
  }
  return found;
}
