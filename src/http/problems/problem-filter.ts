import { STATUS_CODES } from 'node:http';
import { Catch, HttpException } from '@nestjs/common';
import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { queryProblem } from '../reads/query-problems';
import { unavailable } from '../respond';
import { Problem } from './problem';

/** Tells of errors nobody expected: their text goes to the log, never to the caller. */
export type ReportError = (error: unknown) => void;

/** Writes every error as application/problem+json. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(private readonly report: ReportError) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const reply = http.getResponse<FastifyReply>();
    if (reply.sent) return;
    const problem = problemFrom(error, this.report);
    if (problem.status === 413) letBodyThrough(http.getRequest<FastifyRequest>(), reply);
    sendProblem(reply, problem);
  }
}

/**
 * A connection closed under who is still sending breaks before the answer is read: the rest is dropped as it comes,
 * within the time a request may take, and the connection stays.
 */
function letBodyThrough({ raw }: FastifyRequest, reply: FastifyReply): void {
  void reply.header('connection', 'keep-alive');
  raw.resume();
}

export function sendProblem(reply: FastifyReply, problem: Problem): void {
  const { status, headers } = problem;
  void reply
    .code(status)
    .headers(headers)
    .type('application/problem+json')
    .send(JSON.stringify(problemBody(problem)));
}

export const problemBody = ({ status, code, detail, members }: Problem): Record<string, unknown> => ({
  type: `/problems/${code}`,
  title: status === 402 ? 'Budget refused' : (STATUS_CODES[status] ?? 'Error'),
  status,
  detail,
  code,
  ...members,
});

/** Errors of the framework carry no values of the request into the answer. */
export function problemFrom(error: unknown, report: ReportError): Problem {
  if (error instanceof Problem) return error;
  const busy = unavailable(error);
  if (busy) return busy;
  const asked = queryProblem(error);
  if (asked) return asked;
  const status = statusOf(error);
  if (status === undefined || status >= 500) {
    report(error);
    return new Problem(
      500,
      'internal_error',
      'something went wrong on our side; nothing can be said about the outcome',
      { outcome: 'unknown' },
    );
  }
  const [code, detail] = PLAIN[status] ?? ['invalid_request', 'the request cannot be read'];
  const members = status === 400 ? { faults: [{ path: '', message: detail }] } : {};
  return new Problem(status, code, detail, members);
}

const PLAIN: Readonly<Record<number, readonly [string, string]>> = {
  400: ['invalid_request', 'the body is not JSON'],
  404: ['not_found', 'there is nothing at this path'],
  405: ['method_not_allowed', 'this path does not take this method'],
  413: ['body_too_large', 'the body is too large'],
  415: ['unsupported_media_type', 'the body must be application/json'],
};

function statusOf(error: unknown): number | undefined {
  if (error instanceof HttpException) return error.getStatus();
  const status = (error as { statusCode?: unknown } | null)?.statusCode;
  return typeof status === 'number' ? status : undefined;
}
