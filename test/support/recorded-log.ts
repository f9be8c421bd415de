/** A log that remembers what it was told. */
export class RecordedLog {
  readonly entries: {
    level: 'info' | 'warn';
    message: string;
    fields: Record<string, unknown> | undefined;
  }[] = [];

  info(message: string, fields?: Record<string, unknown>): void {
    this.entries.push({ level: 'info', message, fields });
  }

  warn(message: string, fields?: Record<string, unknown>): void {
    this.entries.push({ level: 'warn', message, fields });
  }

  messages(): string[] {
    return this.entries.map(({ message }) => message);
  }
}
