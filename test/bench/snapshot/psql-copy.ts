import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { onClientCore } from '../cores.js';
import { endedChildrenCpuSeconds } from '../process-usage.js';
import type {
  SnapshotReader,
  SnapshotResult,
  SnapshotTask,
} from './snapshot-reader.js';

const PROGRAM = 'psql';

/** PostgreSQL's own client, which writes what it receives to nowhere. */
export class PsqlCopy implements SnapshotReader {
  readonly name = 'copy';
  readonly bounded = true;
  #version = '';

  get options(): string {
    return `${this.#version}, \\copy orders to /dev/null; its whole life is measured`;
  }

  prepare(): string | null {
    try {
      this.#version = execFileSync(PROGRAM, ['--version'], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim();
      return null;
    } catch {
      return 'not installed; it is in the client package of PostgreSQL';
    }
  }

  async read({ source, cores }: SnapshotTask): Promise<SnapshotResult> {
    const { password } = source.database.connection;
    const { program, args } = onClientCore(cores, PROGRAM, [
      '--no-psqlrc',
      `--dbname=${source.database.url}`,
      String.raw`--command=\copy orders to /dev/null`,
    ]);
    const cpu = endedChildrenCpuSeconds(process.pid);
    const start = performance.now();
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        LC_ALL: 'C',
        PGPASSWORD: password,
        PGSSLMODE: 'disable',
      },
    });
    let said = '';
    child.stdout.setEncoding('utf8');
    child.stdout.on('data', (text: string) => (said += text));
    await once(child, 'close');
    const wallSeconds = (performance.now() - start) / 1000;
    const cpuThen = endedChildrenCpuSeconds(process.pid);
    if (child.exitCode !== 0)
      throw new Error(`${PROGRAM} ended with ${child.exitCode}`);
    return {
      wallSeconds,
      clientCpuSeconds: cpu === null || cpuThen === null ? null : cpuThen - cpu,
      peakRssMb: null,
      idleRssMb: null,
      rows: Number(/^COPY (\d+)$/m.exec(said)?.[1]),
    };
  }
}
