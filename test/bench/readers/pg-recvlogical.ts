import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { onClientCore } from '../cores.js';
import { endedChildrenCpuSeconds, peakRssMb } from '../process-usage.js';
import type { Reader, ReadResult, ReadTask } from './reader.js';

const PROGRAM = 'pg_recvlogical';
const MEMORY_POLL_MS = 20;

/** PostgreSQL's own client, which writes what it receives to a file, here to none. */
export class PgRecvlogical implements Reader {
  readonly name = PROGRAM;
  readonly hasSink = false;
  #version = '';

  get options(): string {
    return `${this.#version}, -f /dev/null, proto_version 1`;
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

  async read(task: ReadTask): Promise<ReadResult> {
    const cpu = endedChildrenCpuSeconds(process.pid);
    const { program, args } = onClientCore(task.cores, PROGRAM, options(task));
    const child = spawn(program, args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: environment(task),
    });
    let start: number | null = null;
    let said = '';
    let peak: number | null = null;
    child.stderr.setEncoding('utf8');
    child.stderr.on('data', (text: string) => {
      said += text;
      if (said.includes('streaming initiated')) start ??= performance.now();
    });
    const exit = once(child, 'exit');
    const watching = new AbortController();
    const watched = watchMemory(child.pid, watching.signal, (megabytes) => {
      peak = megabytes;
    });
    await exit;
    const end = performance.now();
    const cpuThen = endedChildrenCpuSeconds(process.pid);
    watching.abort();
    await watched;
    const code = child.exitCode;
    if (code !== 0 || start === null)
      throw new Error(`${PROGRAM} ended with ${code}: ${said.trim()}`);
    return {
      wallSeconds: (end - start) / 1000,
      clientCpuSeconds: cpu === null || cpuThen === null ? null : cpuThen - cpu,
      peakRssMb: peak,
      // It counts nothing; that it ended says that it has received the end of the last commit.
      rows: null,
      messages: null,
      checksum: null,
    };
  }
}

function options({ source, slot, expected }: ReadTask): string[] {
  const { host, port, user, database } = source.database.connection;
  return [
    '--start',
    '--no-loop',
    '--verbose',
    '--file=/dev/null',
    '--option=proto_version=1',
    '--option=publication_names=p',
    `--slot=${slot}`,
    `--endpos=${expected.endLsn}`,
    `--host=${host}`,
    `--port=${port}`,
    `--username=${user}`,
    `--dbname=${database}`,
  ];
}

function environment({ source, load }: ReadTask): NodeJS.ProcessEnv {
  return {
    ...process.env,
    LC_ALL: 'C',
    PGPASSWORD: source.database.connection.password,
    PGSSLMODE: load.transport === 'TLS' ? 'require' : 'disable',
  };
}

/** The memory of a process can be asked for only while it runs. */
async function watchMemory(
  pid: number | undefined,
  until: AbortSignal,
  tell: (megabytes: number) => void,
): Promise<void> {
  while (pid !== undefined && !until.aborted) {
    const megabytes = peakRssMb(pid);
    if (megabytes !== null) tell(megabytes);
    await sleep(MEMORY_POLL_MS);
  }
}
