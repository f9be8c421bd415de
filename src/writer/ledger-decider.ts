import { answerFrom } from '../domain/answer-from';
import { decide } from '../domain/decide';
import { advance, evolve } from '../domain/evolve';
import { dueBefore } from '../domain/expiry';
import { OpeningFold } from '../domain/opening';
import { sealEvent } from '../domain/sealing';
import { STATE_SCHEMA_VERSION, restoreState, serialiseState } from '../domain/snapshot';
import { initialState } from '../domain/state';
import { decodeEvent } from '../domain/upcast';
import type { Decider } from './decider';

/** The rules of money as they stand in `domain/`. */
export const LEDGER_DECIDER: Decider = {
  initialState,
  decide,
  evolve,
  advance,
  answerFrom,
  dueBefore,
  opening: (budget, state, atMs) => new OpeningFold(budget, state, atMs),
  seal: sealEvent,
  decode: decodeEvent,
  stateVersion: STATE_SCHEMA_VERSION,
  serialise: serialiseState,
  restore: restoreState,
};
