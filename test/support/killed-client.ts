import { onTestFinished } from 'vitest';
import { readSlot, terminateBackend } from './logical-slot.js';
import { TcpProxy } from './tcp-proxy.js';
import type { DatabaseConnection, TestDatabase } from './test-database.js';
import { waitFor } from './wait-for.js';

/** A way to the source that can be taken from a pipeline for ever. */
export interface Lifeline {
  readonly proxy: TcpProxy;
  readonly connection: DatabaseConnection;
  /** As SIGKILL of the client: nothing passes any more in either direction, and the server lets the slot go. */
  kill(): Promise<void>;
}

/** A proxy of the running test in front of a source. */
export async function lifeline(source: TestDatabase): Promise<Lifeline> {
  const proxy = await TcpProxy.start(source.connection);
  onTestFinished(() => proxy.close());
  const { host, port } = proxy;
  return {
    proxy,
    connection: { ...source.connection, host, port },
    async kill() {
      proxy.cut();
      const slotName = `slot_${source.name}`;
      const pid = (await readSlot(source, slotName))?.activePid ?? null;
      if (pid !== null) await terminateBackend(source, pid);
      await waitFor(
        async () => (await readSlot(source, slotName))?.active === false,
        { message: 'the slot to be free' },
      );
    },
  };
}
