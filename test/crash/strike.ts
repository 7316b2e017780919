import { setTimeout as sleep } from 'node:timers/promises';
import type { Copies } from './copies.js';
import type { Kill, Place } from './plan.js';
import type { Stage } from './stage.js';

/** The latest of the random moments, from the start of the process: booting takes the first half second. */
const LATEST_MS = 1_600;
/** How often a point is passed at most before the application stands there. */
const PASSES = 6;
/** The same of chunks, which pass quickly, and of the pages of an initial copy. */
const CHUNKS = 25;
const PAGES = 12;
/** Transactions in an open batch; one that is closed has more. */
const WAITING = 3;

/** Kills the running application at its place. The load goes on. */
export async function strike(
  stage: Stage,
  copies: Copies,
  kill: Kill,
): Promise<void> {
  if (copies.wantedAt(kill.place)) await copies.keepGoing();
  await copies.makeRoomFor(kill.place);
  await STRIKES[kill.place](stage, kill, copies);
  stage.load.resume();
}

type Strike = (stage: Stage, kill: Kill, copies: Copies) => Promise<void>;

const STRIKES: Readonly<Record<Place, Strike>> = {
  async 'at a random moment'(stage, { delay }) {
    // Beside a copy a few are enough: it waits for each of them.
    if (stage.promise.snapshot === null || delay < 0.25) stage.load.makeLarge();
    if (delay < 0.25) stage.load.makeUnclear();
    await sleep(delay * LATEST_MS);
    await stage.kill();
  },

  async idle(stage) {
    await stage.idle();
    await stage.kill();
  },

  async 'while it arrives'(stage, { place }) {
    await stage.stand(place);
    stage.load.makeLarge();
    await stage.stands(place);
    await stage.kill();
  },

  async 'while it is held'(stage, { place }) {
    await stage.streams();
    await stage.load.leaveOpen();
    await stage.stand(place);
    await stage.stands(place);
    await stage.kill();
  },

  async 'while it is written to disk'(stage, kill) {
    await stage.streams();
    stage.load.resume();
    await standing(stage, kill);
  },

  async 'while draining'(stage, { place, delay }) {
    if (stage.promise.points.includes('in an open batch')) {
      // It is closed by the end, and handed over then.
      await stage.opensBatch(place, WAITING);
      await stage.drains();
      await stage.stands(place);
    } else {
      await stage.stand(place, passes(delay));
      await stage.stands(place);
      await stage.drains();
    }
    await stage.kill();
  },

  async 'in an open batch'(stage, { place }) {
    await stage.opensBatch(place, WAITING);
    await stage.kill();
  },

  'in a transaction': standing,
  'before the ack': standing,
  'before the store': standing,
  'in a batch': standing,
  'in a message': standing,
  'before the ack of a message': standing,
  'in a chunk': standingInCopy(CHUNKS),
  'before the ack of a chunk': standingInCopy(CHUNKS),
  'before the store of a chunk': standingInCopy(CHUNKS),
  'in a page': standingInCopy(PAGES),
  'before the ack of a page': standingInCopy(PAGES),
};

async function standing(stage: Stage, { place, delay }: Kill): Promise<void> {
  await stage.stand(place, passes(delay));
  await stage.stands(place);
  await stage.kill();
}

function standingInCopy(most: number): Strike {
  return async (stage, { place, delay }, copies) => {
    const passed = Math.floor(delay * most);
    await stage.stand(place, passed);
    while (!(await copies.standsOrEnds(place))) {
      await copies.keepGoing();
      await stage.stand(place, passed);
    }
    await stage.kill();
  };
}

function passes(delay: number): number {
  return Math.floor(delay * PASSES);
}
