import { answerFrom } from './answer-from';
import type { Decision } from './decision';
import type { LedgerEvent } from './events';
import type { LedgerState } from './state';

/** Events to append; the one at `main` answers. */
export function acceptedWith(events: readonly LedgerEvent[], main: number, state: LedgerState): Decision {
  const event = events[main];
  if (!event) throw new RangeError('no event answers');
  return { kind: 'accepted', events, answer: answerFrom({ ...event, revision: state.revision + 1 + main }) };
}
