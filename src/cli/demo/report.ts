import pc from 'picocolors';

/** What the demo prints, and whether everything it expected came true. */
export class Report {
  failures = 0;

  chapter(title: string): void {
    this.line('');
    this.line(pc.bold(title));
  }

  line(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  /** Says what is, and that it is what it must be — or what it should have been. */
  expect(what: string, actual: unknown, expected: unknown): void {
    const met = actual === expected;
    if (!met) this.failures += 1;
    const mark = met ? pc.green('✓') : pc.red('✗');
    this.line(`  ${mark} ${what}: ${String(actual)}${met ? '' : pc.red(` (expected ${String(expected)})`)}`);
  }
}
