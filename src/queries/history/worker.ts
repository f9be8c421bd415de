import { parentPort } from 'node:worker_threads';
import { foldOf } from './fold';
import type { Fold, HistoryRequest, HistoryResult } from './fold';

/** What the service sends: a request, then pages of the log until it is told to stop, then the end. */
export type ToWorker =
  | { readonly kind: 'begin'; readonly request: HistoryRequest }
  | { readonly kind: 'page'; readonly events: readonly Uint8Array[] }
  | { readonly kind: 'end' };
export type FromWorker =
  | { readonly kind: 'ready'; readonly more: boolean }
  | { readonly kind: 'result'; readonly result: HistoryResult }
  | { readonly kind: 'failed'; readonly message: string };

let fold: Fold<HistoryResult> | undefined;

function handle(message: ToWorker): FromWorker {
  switch (message.kind) {
    case 'begin':
      fold = foldOf(message.request);
      return { kind: 'ready', more: true };
    case 'page':
      return { kind: 'ready', more: fold?.page(message.events) ?? false };
    case 'end': {
      if (!fold) return { kind: 'failed', message: 'nothing was begun' };
      const result = fold.result();
      fold = undefined;
      return { kind: 'result', result };
    }
  }
}

parentPort?.on('message', (message: ToWorker) => {
  let answer: FromWorker;
  try {
    answer = handle(message);
  } catch (error) {
    answer = { kind: 'failed', message: error instanceof Error ? error.message : String(error) };
  }
  parentPort?.postMessage(answer);
});
