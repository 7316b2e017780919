import { HALTS } from '../lib/engine/model/halts.js';

const INTRODUCTION = `# Halts

A pipeline that cannot go on without losing or corrupting data **halts**: it stands still, leaves slot and checkpoint as they are, and says
why. Nothing is skipped or dropped unless [somebody orders it](operations.md#a-transaction-that-cannot-be-applied). The server keeps the WAL from there on, so a halt must not be left alone for long:
[what pins WAL, and how to see it](operations.md#what-pins-wal-and-how-to-see-it).

The same code, position and remedy stand in

- one line of the log at level \`error\`, and one at level \`log\` when the pipeline streams again;
- \`pipeline.halt\` (with \`sinkError()\`, the error of your own code, which is shown nowhere else because it may hold row values);
- the event \`halt\`, and the \`HaltError\` with which \`whenStreaming()\` and \`caughtUp()\` reject;
- \`pipeline.status().halt\`, and so the health answer, in which readiness is down.

When the cause is mended, \`pipeline.start()\` goes on from the checkpoint; a restart of the process does the same. With the option \`onHalt: 'exit'\` a
halt ends the process: the exit code is set to 1, the process gets a SIGTERM so that shutdown hooks run, and it ends after \`drainTimeout\`
even if they do not.

What passes by itself does not halt: a lost connection, a server that is down or starts up, wrong credentials, a checkpoint that cannot
be read. That is tried again for as long as it takes. The state is \`connecting\` until the pipeline has streamed once, and \`reconnecting\` later.

Where changes are lost, the sink has to be loaded anew. The order of the steps matters: a new slot first, then the rows, or what is
written in between never comes. [Operations](operations.md#restart-failure-fail-over) has the steps.
`;

/** The page docs/halts.md, made of the table that the pipelines halt by. */
export function haltsPage(): string {
  const sections = Object.entries(HALTS).map(
    ([code, { cause, remedy }]) =>
      `## \`${code}\`\n\n${cause}\n\n**What to do**: ${remedy}\n`,
  );
  return [INTRODUCTION, ...sections].join('\n');
}
