import { describe, expect, it } from 'vitest';
import type { HaltCode } from '../../lib/engine/model/halts.js';
import type { DecoderOptions } from '../../lib/engine/options/decoder-options.js';
import { capture, inserted } from '../support/capture.js';
import { haltedFor, slotAndCheckpoint } from '../support/halted.js';
import { pglogicalSource } from '../support/pglogical-source.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { replaceText, tamperingProxy } from '../support/tampering-proxy.js';

interface Tampering {
  readonly what: string;
  readonly code: HaltCode;
  readonly options: DecoderOptions;
  readonly from: string;
  readonly to: string;
}

const WAL2JSON: DecoderOptions = {
  decoder: 'wal2json',
  tables: [['public', 't']],
};
const PGLOGICAL: DecoderOptions = {
  decoder: 'pglogical',
  replicationSets: 'default',
};

const TAMPERINGS: readonly Tampering[] = [
  {
    what: 'a number that is no string (13.9 no. 85)',
    code: 'decode_failure',
    options: WAL2JSON,
    from: '"value":"2"',
    to: '"value": 2 ',
  },
  {
    what: 'a number where the string was',
    code: 'decode_failure',
    options: WAL2JSON,
    from: '"value":"2"}',
    to: '"value":222}',
  },
  {
    what: 'a commit without its position (13.9 no. 85)',
    code: 'decoder/lsn_missing',
    options: WAL2JSON,
    from: '"nextlsn"',
    to: '"nextlsm"',
  },
  {
    what: 'an action that nobody knows',
    code: 'unsupported_message',
    options: WAL2JSON,
    from: '{"action":"I"',
    to: '{"action":"X"',
  },
  {
    what: 'another version of the protocol (13.9 no. 85)',
    code: 'decoder/protocol_unsupported',
    options: PGLOGICAL,
    from: 'max_proto_version\u00001',
    to: 'max_proto_version\u00000',
  },
  {
    what: 'a message of an unknown kind',
    code: 'unsupported_message',
    options: PGLOGICAL,
    from: 'I\u0000\u0000\u0000',
    to: 'x\u0000\u0000\u0000',
  },
];

describe.skipIf(noPluginServer)('a stream of a plugin', () => {
  const suite = usePluginServer();

  it.each(TAMPERINGS)(
    'of $options.decoder halts at $what, and loses nothing once it is whole again',
    async ({ code, options, from, to }) => {
      const { source, target } = await pglogicalSource(suite);
      let tampering = false;
      const connection = await tamperingProxy(source.connection, (message) => {
        if (tampering) replaceText(message, from, to);
      });
      const { pipeline, applied } = capture(source, {
        target,
        connection,
        ...options,
      });
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query('insert into t values (1)');
      await pipeline.caughtUp();
      await pipeline.stop();
      const before = await slotAndCheckpoint(source, target);
      tampering = true;
      await source.query('insert into t values (2)');
      pipeline.start();
      await haltedFor(pipeline, code);
      expect(await slotAndCheckpoint(source, target)).toEqual(before);

      tampering = false;
      pipeline.start();
      await pipeline.caughtUp();
      expect(inserted(applied, 'id')).toEqual([1, 2]);
    },
  );
});
