import { cpuSeconds } from '../process-usage.js';
import type { Reader, ReadResult, ReadTask } from './reader.js';

/** The ceiling: the server decodes and sends nothing. */
export class InServer implements Reader {
  readonly name = 'server';
  readonly options =
    'count(*) over pg_logical_slot_peek_binary_changes, proto_version 1, work_mem 1GB';
  readonly hasSink = false;

  prepare(): null {
    return null;
  }

  async read({ source, slot }: ReadTask): Promise<ReadResult> {
    const pid = await source.sessionPid();
    const cpu = cpuSeconds(pid);
    const start = performance.now();
    const messages = await source.countMessages(slot);
    const wallSeconds = (performance.now() - start) / 1000;
    const cpuThen = cpuSeconds(pid);
    return {
      wallSeconds,
      clientCpuSeconds: null,
      peakRssMb: null,
      serverCpuSeconds: cpu === null || cpuThen === null ? null : cpuThen - cpu,
      rows: null,
      messages,
      checksum: null,
    };
  }
}
