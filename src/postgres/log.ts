/** Where this folder tells what it did; a pino logger behind an adapter, or a recorder in tests. */
export interface Log {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
}
