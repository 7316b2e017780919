import type { Reporter } from 'vitest/node';

/**
 * Ends a run with one plain line, `N passed, N failed, N skipped`, that scripts can read. In CI a skipped test
 * fails the run: a test that does not run proves nothing.
 */
export const closingLine: Reporter = {
  onTestRunEnd(modules, unhandledErrors) {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      for (const test of tests) {
        const { state } = test.result();
        count[state === 'pending' ? 'skipped' : state] += 1;
      }
      // A file that cannot be loaded has no tests to count.
      if (!module.ok() && tests.every((test) => test.ok())) count.failed += 1;
    }
    console.log(
      `\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`,
    );
    if (process.env['CI'] !== undefined && count.skipped > 0) {
      process.exitCode = 1;
    }
  },
};
