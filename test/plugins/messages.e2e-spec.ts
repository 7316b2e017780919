import { describe, expect, it } from 'vitest';
import type { Transaction } from '../../lib/engine/model/transaction.js';
import { capture, inserted } from '../support/capture.js';
import { changesOf } from '../support/changes-of.js';
import { terminateBackend, walsenderPid } from '../support/logical-slot.js';
import { emit, emitInTransaction, taking } from '../support/messages.js';
import { capturedBy, pluginSource } from '../support/plugin-sources.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { waitFor } from '../support/wait-for.js';

/** What comes in a transaction, in the order of its ordinals. */
function contents(transaction: Transaction): unknown[] {
  return [
    ...changesOf(transaction).map(({ op, ordinal }) => [ordinal, op]),
    ...transaction.messages.map(({ prefix, content, ordinal }) => [
      ordinal,
      prefix,
      content.toString(),
    ]),
  ].toSorted((one, other) => Number(one[0]) - Number(other[0]));
}

describe.skipIf(noPluginServer)('messages of wal2json', () => {
  const suite = usePluginServer();

  it('come inside transactions at their place, and outside at once and at the position that the server gave', async () => {
    const both = await pluginSource(suite);
    const { source, pipeline, applied, message } = taking(
      both,
      capturedBy('wal2json'),
    );
    pipeline.start();
    await pipeline.whenStreaming();
    const client = await source.connect();
    await client.query('begin');
    const first = await emitInTransaction(client, 'Größe "😀"', 'in\n"side"');
    await client.query('insert into t values (1)');
    const outside = await emit(client, 'of it', 'outside');
    await client.query('insert into t values (2)');
    const last = await emitInTransaction(client, '', '');
    await client.query('commit');
    const alone = await emitInTransaction(source, 'alone', 'é');
    await client.query('begin');
    await emitInTransaction(client, 'undone');
    const kept = await emit(client, 'kept', 'x'.repeat(100_000));
    await client.query('rollback');
    await pipeline.caughtUp(kept);
    expect(applied.map(contents)).toEqual([
      [
        [0, 'Größe "😀"', 'in\n"side"'],
        [1, 'insert'],
        [2, 'insert'],
        [3, '', ''],
      ],
      [[0, 'alone', 'é']],
    ]);
    expect(
      applied.flatMap(({ messages }) => messages.map(({ lsn }) => lsn)),
    ).toEqual([first, last, alone]);
    expect(message.calls).toMatchObject([
      { transactional: false, lsn: outside, prefix: 'of it', ordinal: null },
      { transactional: false, lsn: kept, prefix: 'kept', ordinal: null },
    ]);
    expect(message.calls.map(({ content }) => content.length)).toEqual([
      7, 100_000,
    ]);
  });

  it('end at the first zero byte: the plugin writes no more of them', async () => {
    const both = await pluginSource(suite);
    const { source, pipeline, message } = taking(both, capturedBy('wal2json'));
    pipeline.start();
    await pipeline.whenStreaming();
    const lsn = await emit(source, 'p', Buffer.from([1, 0xff, 0, 2]));
    await pipeline.caughtUp(lsn);
    expect(message.calls.map(({ content }) => content)).toEqual([
      Buffer.from([1, 0xff]),
    ]);
  });

  it('are not delivered, nor counted, unless they are asked for', async () => {
    const { source, target } = await pluginSource(suite);
    const { pipeline, applied } = capture(source, {
      target,
      ...capturedBy('wal2json'),
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const client = await source.connect();
    await client.query('begin');
    await emitInTransaction(client, 'p', 'before');
    await client.query('insert into t values (1)');
    await emit(client, 'p', 'outside');
    await client.query('commit');
    await emitInTransaction(source, 'p', 'alone');
    await emit(source, 'p', 'outside');
    await pipeline.caughtUp();
    expect(applied.map(contents)).toEqual([[[0, 'insert']]]);
    expect(pipeline.halt).toBeNull();
  });

  it('are there after a lost connection, each outside a transaction twice at most', async () => {
    const both = await pluginSource(suite);
    const { source, target } = both;
    const lost = async (): Promise<void> =>
      terminateBackend(
        source,
        await walsenderPid(source, `slot_${source.name}`),
      );
    let calls = 0;
    const { pipeline, applied, message } = taking(both, {
      target,
      ...capturedBy('wal2json'),
      work: async () => {
        calls += 1;
        if (calls === 2) await lost();
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const positions = [];
    for (let i = 0; i < 4; i++) {
      positions.push(await emit(source, 'p', `outside ${i}`));
      await source.query(
        `begin; select pg_logical_emit_message(true, 'p', 'inside'); insert into t values (${i}); commit`,
      );
    }
    await waitFor(() => applied.length === 4);
    expect(inserted(applied, 'id')).toEqual([0, 1, 2, 3]);
    expect(applied.map(({ messages }) => messages.length)).toEqual([
      1, 1, 1, 1,
    ]);
    const got = message.calls.map(({ lsn }) => lsn);
    expect([...new Set(got)]).toEqual(positions);
    expect(got.length - 4).toBeLessThanOrEqual(1);
  });
});
