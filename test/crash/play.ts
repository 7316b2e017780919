import type { PostgresServer } from '../support/postgres-server.js';
import type { CrashOptions } from './crash-options.js';
import { Copies } from './copies.js';
import { describeCopiedTwice, examineCopies } from './examine-copies.js';
import { examine, repeatedIn } from './examine.js';
import { type ModeName, MODES } from './modes.js';
import { planKills } from './plan.js';
import type { ModeReport } from './report.js';
import { Stage } from './stage.js';
import { strike } from './strike.js';

/** Written before and after a clean stop. */
const MOVES = 30;

/** Kills applications of a mode according to the plan, and examines what has come of it. */
export async function play(
  server: PostgresServer,
  mode: ModeName,
  { seed, kills, plant }: CrashOptions,
  tell: (line: string) => void,
): Promise<ModeReport> {
  const start = performance.now();
  const plan = planKills(seed, MODES[mode].points, kills);
  const points: Record<string, number> = {};
  const stage = await Stage.create(server, mode, plant);
  const copies = new Copies(stage);
  let struck = 0;
  let failure: string | null = null;
  let repeatedAfterStop = 0;
  try {
    await begin(stage);
    for (const kill of plan) {
      await strike(stage, copies, kill);
      struck += 1;
      points[kill.place] = (points[kill.place] ?? 0) + 1;
      tell(`${mode} ${struck}/${plan.length}: killed ${kill.place}`);
      await copies.noteKill();
      await copies.start(kill.place);
    }
    repeatedAfterStop = await end(stage, copies);
  } catch (error) {
    failure = error instanceof Error ? error.message : 'no error';
    tell(`${mode}: ${failure}`);
  }
  try {
    await stage.load.pause();
    const examination = await examine(
      stage.source,
      stage.target,
      stage.promise,
    );
    const copied = await examineCopies(stage.target, stage.promise);
    if (copied.copiedTwice > 0 && stage.promise.mayCopyAgain === 0)
      for (const line of await describeCopiedTwice(stage.target))
        tell(`${mode}: ${line}`);
    return {
      kills: struck,
      ...copies.andThose({ ...examination, ...copied }),
      copies: copies.count,
      killsInCopies: copies.kills,
      filesLeft: stage.spillFiles.left,
      killsWithFiles: stage.spillFiles.kills,
      repeatedAfterStop,
      points,
      failed: failure === null ? 0 : 1,
      seconds: Math.round((performance.now() - start) / 1000),
      orphans: failure === null ? stage.running : 0,
    };
  } finally {
    await stage.remove();
  }
}

/** The slot is there before the first transaction, unless rows are copied that are there before the slot. */
async function begin(stage: Stage): Promise<void> {
  if (stage.promise.snapshot === 'initial') stage.load.resume();
  stage.start();
  if (stage.promise.snapshot === 'initial') return;
  await stage.application.says('streaming');
  stage.load.resume();
}

/** A run that nobody disturbs: it ends in the middle of the load, and another catches up. Gives what that one repeated. */
async function end(stage: Stage, copies: Copies): Promise<number> {
  await stage.application.says('streaming');
  await stage.load.moves(MOVES);
  await stage.close();
  stage.start();
  await stage.load.moves(MOVES);
  await stage.load.pause();
  await copies.end();
  await stage.idle();
  await stage.close();
  return repeatedIn(stage.target, stage.run);
}
