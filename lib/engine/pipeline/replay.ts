import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Needed } from '../decode/decoder.js';
import type { StreamCommit } from '../decode/pgoutput/stream-messages.js';
import { LoopTurn } from '../model/loop-turn.js';
import type {
  BeginMessage,
  CommitMessage,
} from '../model/replication-message.js';
import { FrameCursor } from '../streamed/frame-log.js';
import type { StreamedTransaction } from '../streamed/streamed-transaction.js';

/** Between two looks at the clock. */
const UNTIMED_BYTES = 16 * 1024;

/** Where a transaction that has committed runs through. */
export interface ReplayPorts {
  /** Nothing is taken in any more. */
  readonly closed: boolean;
  accept(message: BeginMessage | CommitMessage): void;
  /**
   * Takes the message from `start` to `end`.
   *
   * @returns what has to be learned before it is taken; `null` when it was
   */
  feed(bytes: Buffer, start: number, end: number): Needed | null;
  ask(needed: Needed): Promise<void>;
  /** Resolves when there is room for more; `null` when there is. */
  room(): Promise<void> | null;
}

/**
 * Runs a transaction that was kept while it was running through what takes the stream, as if it were sent now: plain, and whole.
 *
 * @returns whether it was; not when nothing is taken in any more
 * @throws what reading from disk throws
 */
export async function replay(
  transaction: StreamedTransaction,
  { xid, commitLsn, endLsn, commitTimeMicros }: StreamCommit,
  ports: ReplayPorts,
): Promise<boolean> {
  if (ports.closed) return false;
  const turn = new LoopTurn();
  let untimed = 0;
  ports.accept({ kind: 'begin', finalLsn: commitLsn, commitTimeMicros, xid });
  for await (const block of transaction.blocks()) {
    const frame = new FrameCursor(block);
    while (!ports.closed && frame.next()) {
      if (!transaction.isAborted(frame.subxid))
        for (
          let needed = ports.feed(block, frame.start, frame.end);
          needed !== null && !ports.closed;
          needed = ports.feed(block, frame.start, frame.end)
        )
          await ports.ask(needed);
      const room = ports.room();
      if (room !== null) await room;
      untimed += frame.end - frame.start;
      if (untimed < UNTIMED_BYTES) continue;
      untimed = 0;
      if (turn.isLong()) await nextTurn();
    }
    if (ports.closed) return false;
  }
  // It may have ended while nothing more was found.
  if (ports.closed) return false;
  ports.accept({ kind: 'commit', commitLsn, endLsn, commitTimeMicros });
  return true;
}
