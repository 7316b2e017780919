import { setTimeout as sleep } from 'node:timers/promises';
import { childrenOf } from '../bench/process-usage.js';
import {
  catchAt,
  clientSends,
  type Moment,
  serverAnswers,
  serverHasSent,
  serverSends,
} from '../support/catch-at.js';
import type { StopMode } from '../support/postgres-server.js';
import type { Fault, Kind } from './plan.js';
import type { Stage } from './stage.js';

/** Does its damage, and undoes it. The application is left running, and may be anywhere on its way back. */
type Injection = (stage: Stage, size: number) => Promise<void>;

const LATEST_MS = 700;
const FLAPS = 50;
const FLAP_MS = 50;
/** Of a transaction that is larger: the sink reads it while it arrives. */
const MIDDLE_BYTES = 2_200_000;

/** Injects a fault after its delay. */
export async function inject(stage: Stage, fault: Fault): Promise<void> {
  await sleep(fault.delay * LATEST_MS);
  await INJECTIONS[fault.kind](stage, fault.size);
}

const INJECTIONS: Readonly<Record<Kind, Injection>> = {
  async kill(stage) {
    await stage.application.kill();
    stage.start();
  },

  async 'kill-connecting'(stage, size) {
    await stage.application.kill();
    stage.start();
    await stage.booted();
    await sleep(size * 50);
    await stage.application.kill();
    stage.start();
  },

  async 'kill-after-large'(stage) {
    await stage.booted();
    const held = stage.holdSink('large');
    stage.load.makeLarge();
    await held;
    await stage.application.kill();
    stage.start();
  },

  async sigterm(stage) {
    await stage.booted();
    stage.application.signal('SIGTERM');
    await stage.ended();
    stage.start();
  },

  async 'sigterm-twice'(stage, size) {
    await stage.booted();
    stage.application.signal('SIGTERM');
    await sleep(size * 50);
    stage.application.signal('SIGTERM');
    await stage.ended();
    stage.start();
  },

  async close(stage) {
    await stage.booted();
    stage.application.close();
    await stage.ended();
    stage.start();
  },

  async 'close-connecting'(stage, size) {
    await stage.application.kill();
    stage.start();
    await stage.booted();
    await sleep(size * 50);
    stage.application.close();
    stage.application.close();
    await stage.ended();
    stage.start();
  },

  async 'server-kill'(stage, size) {
    const { pid } = stage.sourceServer;
    const backends = pid === null ? null : childrenOf(pid);
    await stage.sourceServer.kill();
    for (const backend of backends ?? []) killIfAlive(Number(backend));
    await sleep(size * 1_500);
    await stage.sourceServer.startAgain();
  },

  'server-immediate': (stage, size) => stopFor(stage, 'immediate', size),
  'server-fast': (stage, size) => stopFor(stage, 'fast', size),

  login: (stage) => terminateAt(stage, serverSends('server_version')),
  chain: (stage) => terminateAt(stage, clientSends('IDENTIFY_SYSTEM')),
  'slot-read': (stage) =>
    terminateAt(stage, clientSends('pg_replication_slots')),
  start: (stage) => terminateAt(stage, serverAnswers('START_REPLICATION')),
  types: (stage) => terminateAt(stage, clientSends('pg_type')),

  async transaction(stage) {
    stage.load.makeLarge();
    await terminateWhen(stage, serverHasSent(MIDDLE_BYTES));
  },

  async sink(stage) {
    await stage.holdSink('work');
    await stage.terminateSessions();
  },

  async idle(stage) {
    await stage.load.pause();
    await stage.caughtUp();
    await stage.terminateSessions();
    stage.load.resume();
  },

  async stop(stage) {
    await stage.holdSink('work');
    stage.application.close();
    await stage.terminateSessions();
    await stage.ended();
    stage.start();
  },

  async cut(stage, size) {
    stage.proxy.cut();
    await sleep(500 + size * 5_000);
    stage.proxy.restore();
  },

  async 'half-open-to-server'(stage, size) {
    stage.proxy.halfOpen('client-to-server');
    await sleep(500 + size * 5_000);
    stage.proxy.restore();
  },

  async 'half-open-to-client'(stage, size) {
    stage.proxy.halfOpen('server-to-client');
    await sleep(500 + size * 5_000);
    stage.proxy.restore();
  },

  async delay(stage, size) {
    stage.proxy.delay(20 + size * 400);
    await sleep(2_000);
    stage.proxy.restore();
  },

  async throttle(stage, size) {
    stage.proxy.throttle(20_000 + size * 200_000);
    stage.load.makeLarge();
    await sleep(2_500);
    stage.proxy.restore();
  },

  'flapping-network': (stage) => flap(() => stage.proxy.reset()),
  'flapping-backends': (stage) => flap(() => stage.terminateSessions()),
};

async function stopFor(
  { sourceServer }: Stage,
  mode: StopMode,
  size: number,
): Promise<void> {
  await sourceServer.stop(mode);
  await sleep(size * 1_500);
  await sourceServer.startAgain();
}

/** Lets the application connect anew, and ends all its sessions at a moment of that. */
async function terminateAt(stage: Stage, moment: Moment): Promise<void> {
  const reconnect = stage.terminateSessions();
  await Promise.all([reconnect, terminateWhen(stage, moment)]);
}

/** Ends all sessions of the application at a moment. What it sees of that comes after the moment. */
async function terminateWhen(stage: Stage, moment: Moment): Promise<void> {
  try {
    await catchAt(stage.proxy, moment);
    await stage.terminateSessions();
  } finally {
    stage.proxy.restore();
  }
}

async function flap(once: () => Promise<void> | void): Promise<void> {
  for (let flaps = 0; flaps < FLAPS; flaps += 1) {
    await once();
    await sleep(FLAP_MS);
  }
}

function killIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has noticed the end of its postmaster.
  }
}
