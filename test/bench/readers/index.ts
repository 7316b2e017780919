import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { programPath } from '../child-process.js';
import { projectFolder } from '../project-folder.js';
import { InServer } from './in-server.js';
import { NodeReader } from './node-reader.js';
import { PgRecvlogical } from './pg-recvlogical.js';
import type { Reader } from './reader.js';

const OTHER_LIBRARY = 'pg-logical-replication';

/** Every reader, in the order in which they take turns. */
export function allReaders(): Reader[] {
  return [
    new NodeReader({
      name: 'nestjs-replicant',
      options:
        'in a Nest application (exact values), the sink reads every value into a checksum',
      hasSink: true,
      script: programPath('consume-application.js'),
    }),
    new NodeReader({
      name: 'nestjs-replicant-unpaced',
      options: 'the same with readPacing false',
      hasSink: true,
      script: programPath('consume-application.js'),
      settings: { READ_PACING: 'off' },
    }),
    new PgRecvlogical(),
    new NodeReader({
      name: OTHER_LIBRARY,
      options: '2.5.0, default options, pgoutput, protoVersion 1',
      hasSink: false,
      script: path.join(otherLibraryFolder(), 'reader.mjs'),
      prepare: installOtherLibrary,
    }),
    new NodeReader({
      name: 'raw',
      options: 'counts frames on the socket, proto_version 1',
      hasSink: false,
      script: programPath('consume-raw.js'),
      settings: { READ_PACING: 'off' },
    }),
    new NodeReader({
      name: 'raw-paced',
      options: 'the same with our read pacing',
      hasSink: false,
      script: programPath('consume-raw.js'),
      settings: { READ_PACING: 'on' },
    }),
    new InServer(),
  ];
}

function otherLibraryFolder(): string {
  return path.join(projectFolder(), 'test', 'bench', OTHER_LIBRARY);
}

/** What its lock file names is left alone when it is installed already. */
function installOtherLibrary(): string | null {
  return npm('ls', '--silent') || npm('ci', '--no-audit', '--no-fund')
    ? null
    : 'npm could not install it';
}

function npm(...args: readonly string[]): boolean {
  const { status } = spawnSync('npm', args, {
    cwd: otherLibraryFolder(),
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  });
  return status === 0;
}
