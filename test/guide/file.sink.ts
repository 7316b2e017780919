import { open } from 'node:fs/promises';
import {
  formatLsn,
  OnTransaction,
  parseLsn,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';

/** Writes a line for each change, and one behind the last that ends the transaction. */
@ReplicantSink()
export class ChangeFile {
  constructor(private readonly path: string) {}

  @OnTransaction()
  async append(tx: Transaction): Promise<void> {
    const commitLsn = formatLsn(tx.commitLsn);
    const file = await open(this.path, 'a');
    try {
      // The first line break ends what a crash may have left in the middle of a line.
      await file.appendFile(`\n${JSON.stringify({ begin: commitLsn })}\n`);
      for await (const change of tx.changes)
        await file.appendFile(`${JSON.stringify(change)}\n`);
      await file.appendFile(`${JSON.stringify({ commit: commitLsn })}\n`);
      await file.datasync();
    } finally {
      await file.close();
    }
  }
}

/** Reads the lines of whole transactions, each transaction once: leaves out what a crash cut off, and what came again. */
export async function* readChanges(path: string): AsyncGenerator<string[]> {
  const file = await open(path);
  let last = 0n;
  let lines: string[] = [];
  for await (const line of file.readLines()) {
    const [, mark, text = ''] =
      /^\{"(begin|commit)":"([^"]*)"\}$/.exec(line) ?? [];
    const commitLsn = parseLsn(text);
    if (mark === undefined || commitLsn === null) {
      lines.push(line);
      continue;
    }
    if (mark === 'commit' && commitLsn > last) {
      last = commitLsn;
      yield lines;
    }
    lines = [];
  }
}
