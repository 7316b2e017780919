import { describe, expect, it } from 'vitest';
import type { HaltCode } from '../lib/engine/model/halts.js';
import { capture, inserted } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { tamperingProxy, type Tamper } from './support/tampering-proxy.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '2s' } });
const INSERT = 'I'.charCodeAt(0);
const COMMIT = 'C'.charCodeAt(0);

describe('a stream that a proxy tampers with', () => {
  const faults: [what: string, code: HaltCode, tamper: Tamper][] = [
    [
      'a message of an unknown kind',
      'unsupported_message',
      (message) => {
        if (message[0] === INSERT) message[0] = 'x'.charCodeAt(0);
      },
    ],
    [
      'a message whose inner lengths are wrong',
      'decode_failure',
      (message) => {
        if (message[0] === INSERT) message.writeInt16BE(99, 6);
      },
    ],
    [
      'the commit of another transaction than the one that has begun',
      'protocol_violation',
      (message) => {
        if (message[0] === COMMIT) message.writeInt32BE(0x7f, 6);
      },
    ],
  ];

  it.each(faults)(
    'halts on %s, and loses nothing once it is whole again',
    async (_, code, tamper) => {
      const { source, target } = await sourceAndTarget(suite);
      let tampering = false;
      const connection = await tamperingProxy(source.connection, (message) => {
        if (tampering) tamper(message);
      });
      const { pipeline, applied } = capture(source, { target, connection });
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query("insert into t values (1, 'a')");
      await waitFor(() => applied.length === 1);
      await pipeline.stop();
      const before = await slotAndCheckpoint(source, target);
      tampering = true;
      await source.query("insert into t values (2, 'b')");
      pipeline.start();
      await haltedFor(pipeline, code);
      expect(await slotAndCheckpoint(source, target)).toEqual(before);

      tampering = false;
      pipeline.start();
      await waitFor(() => applied.length === 2);
      expect(inserted(applied, 'id')).toEqual([1, 2]);
    },
  );
});

it('insert_incomplete: an update that a row filter turns into an insert lacks a large column', async () => {
  const { source, target } = await sourceAndTarget(
    suite,
    `create table t(id int primary key, shown boolean, v text);
     alter table t alter v set storage external, alter shown set not null;
     create unique index t_identity on t(id, shown);
     alter table t replica identity using index t_identity;
     create publication p for table t where (shown)`,
  );
  const { pipeline, calls } = capture(source, { target });
  await source.query("insert into t values (1, false, repeat('x', 10000))");
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('update t set shown = true');
  const { detail } = await haltedFor(pipeline, 'insert_incomplete');
  expect(detail).toContain('insert');
  expect(calls).toEqual([]);
});
