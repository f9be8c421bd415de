import { randomUUID } from 'node:crypto';
import type { Origin } from '../writer/submission';
import type { ActingRequest } from './auth/auth';

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;
const CORRELATION = /^[\w.:-]{1,100}$/;

/** Who asks, for the envelope; headers are taken only where they are what they should be. */
export function originOf(request: ActingRequest): Origin {
  const causationId = randomUUID();
  const correlation = request.headers['x-correlation-id'];
  const trace = request.headers['traceparent'];
  return {
    actor: request.actor,
    causationId,
    correlationId:
      typeof correlation === 'string' && CORRELATION.test(correlation) ? correlation : causationId,
    traceparent: typeof trace === 'string' && TRACEPARENT.test(trace) ? trace : undefined,
  };
}
