/** The very last line of a test run, for people and scripts: `N passed, N failed`. */
class CountReporter {
  onRunComplete(_contexts, results) {
    // A file that could not even be loaded has no failed test, but has failed.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const line = `${results.numPassedTests} passed, ${failed} failed\n`;
    process.once('exit', () => process.stdout.write(line)); // jest's own summary comes after every other reporter
  }
}

module.exports = CountReporter;
