import type { TestProject } from 'vitest/node';
import { buildPluginServer } from '../test/support/plugin-binaries.js';

/** Where the server cannot be made, the suites that need it are skipped, which CI does not let pass. */
export async function setup(project: TestProject): Promise<void> {
  try {
    await buildPluginServer();
    project.provide('pluginServer', true);
  } catch (error) {
    console.log(
      `Left out: test/plugins, as no server with wal2json and pglogical can be made here: ${reasonOf(error)}`,
    );
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const said = 'stderr' in error ? String(error.stderr).trim() : '';
  const lines = said.split('\n');
  // So mmdebstrap marks its errors; what comes after them only follows from them.
  const cause = lines.find((line) => line.startsWith('E: '));
  return (cause ?? lines.at(-1)) || error.message;
}
