import { answerOf } from '../model/answer.js';
import { errorClass } from '../model/error-class.js';
import { HaltError } from '../model/halt.js';
import type { HaltCode } from '../model/halts.js';
import type { CommandSession } from './session.js';

/** Returns nothing. */
const STILL_THERE = 'select';

/**
 * Asks a method of the sink. Only a promise that resolves lets the chain go on, and only while the session lives: the answer
 * may take long, and who has been stopped or has lost the slot meanwhile must not touch the checkpoint any more.
 *
 * @param method - its decorator and what it was asked about: names and positions, never a value
 * @throws {HaltError} with this code, and the error of the sink
 */
export async function requireAcceptance(
  session: CommandSession,
  code: HaltCode,
  method: string,
  ask: () => unknown,
): Promise<void> {
  const answer = await answerOf(ask);
  if (answer.kind === 'no_promise')
    throw new HaltError(code, { detail: `${method} returned no promise` });
  if (answer.kind === 'rejected') {
    throw new HaltError(code, {
      detail: `${method} rejected with ${errorClass(answer.error)}`,
      sinkError: answer.error,
    });
  }
  await session.query(STILL_THERE);
}
