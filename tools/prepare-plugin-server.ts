import type { TestProject } from 'vitest/node';
import { preparePluginServer } from '../test/support/plugin-server.js';

/** Where the server cannot be made, the suites that need it are skipped, which CI does not let pass. */
export async function setup(project: TestProject): Promise<void> {
  const absence = await preparePluginServer();
  if (absence === null) project.provide('pluginServer', true);
  else
    console.log(
      `Left out: test/plugins and the bench of the decoders, as no server with wal2json and pglogical can be made here: ${absence}`,
    );
}
