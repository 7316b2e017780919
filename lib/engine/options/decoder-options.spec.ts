import { describe, expect, it } from 'vitest';
import type { ReplicantConfigError } from './config-error.js';
import { resolveDecoder } from './decoder-options.js';
import type { PipelineOptions } from './pipeline-options.js';
import { resolveOptions } from './resolve-options.js';

const NAMES_63_BYTES = ['n'.repeat(63), 'ä'.repeat(31), '😀'.repeat(15)];
const WAL2JSON = { decoder: 'wal2json', tables: [['public', 't']] };
const PGLOGICAL = { decoder: 'pglogical', replicationSets: 'default' };

/** Options as a program without types would pass them. */
function untyped(options: object): PipelineOptions {
  return { connection: 'postgresql://db/shop', slotName: 's', ...options };
}

/** The option that is refused, and what is said of it. */
function refusalOf(options: object): Pick<ReplicantConfigError, 'message'> {
  try {
    resolveOptions(untyped(options));
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('nothing was refused');
}

describe('the options of a decoder', () => {
  it.each([
    [{ publication: 'p' }, { name: 'pgoutput', publications: ['p'] }],
    [
      { decoder: 'pgoutput', publication: ['p', 'P p'] },
      { name: 'pgoutput', publications: ['p', 'P p'] },
    ],
    [PGLOGICAL, { name: 'pglogical', replicationSets: ['default'] }],
    [
      { decoder: 'pglogical', replicationSets: ['a', 'A', '"', ','] },
      { name: 'pglogical', replicationSets: ['a', 'A', '"', ','] },
    ],
    [
      WAL2JSON,
      {
        name: 'wal2json',
        tables: [['public', 't']],
        allowKeylessTables: false,
        schemaCheckInterval: 30_000,
      },
    ],
    [
      {
        ...WAL2JSON,
        tables: [
          ['a.b', 'c'],
          ['a', 'b.c'],
          ['*', '*'],
        ],
        allowKeylessTables: true,
        schemaCheckInterval: 1,
      },
      {
        name: 'wal2json',
        tables: [
          ['a.b', 'c'],
          ['a', 'b.c'],
          ['*', '*'],
        ],
        allowKeylessTables: true,
        schemaCheckInterval: 1,
      },
    ],
  ])('are taken: %j', (options, resolved) => {
    expect(resolveOptions(untyped(options)).decoder).toEqual(resolved);
  });

  it.each(NAMES_63_BYTES)('may name what has 63 bytes: %s', (name) => {
    for (const options of [
      { publication: name },
      { ...PGLOGICAL, replicationSets: name },
      { ...WAL2JSON, tables: [[name, name]] },
    ])
      expect(() => resolveOptions(untyped(options))).not.toThrow();
    for (const options of [
      { publication: `${name}ää` },
      { ...PGLOGICAL, replicationSets: `${name}ää` },
      { ...WAL2JSON, tables: [[`${name}ää`, 't']] },
      { ...WAL2JSON, tables: [['public', `${name}ää`]] },
    ])
      expect(() => resolveOptions(untyped(options))).toThrow('63 bytes');
  });

  const NAMES =
    'must be the name of a replication set or a list of at least one, each of 1 to 63 bytes.';
  const PAIRS =
    "must be a list of at least one pair of schema and table, such as ['public', 'orders'], each of 1 to 63 bytes.";
  const MISFITS: [options: object, message: string][] = [
    [
      { decoder: 'test_decoding', publication: 'p' },
      "Option decoder: must be 'pgoutput' or 'wal2json' or 'pglogical'.",
    ],
    [
      { decoder: null, publication: 'p' },
      "Option decoder: must be 'pgoutput' or 'wal2json' or 'pglogical'.",
    ],
    [
      { decoder: 'pgoutput' },
      'Option publication: must be the name of a publication or a list of at least one, each of 1 to 63 bytes.',
    ],
    [
      { publication: 'p', tables: [['public', 't']] },
      "Option tables: belongs to the decoder 'wal2json', and the decoder is 'pgoutput': remove one of the two.",
    ],
    [
      { publication: 'p', replicationSets: 'default' },
      "Option replicationSets: belongs to the decoder 'pglogical', and the decoder is 'pgoutput': remove one of the two.",
    ],
    [
      { publication: 'p', allowKeylessTables: false },
      "Option allowKeylessTables: belongs to the decoder 'wal2json', and the decoder is 'pgoutput': remove one of the two.",
    ],
    [
      { publication: 'p', schemaCheckInterval: 1 },
      "Option schemaCheckInterval: belongs to the decoder 'wal2json', and the decoder is 'pgoutput': remove one of the two.",
    ],
    [
      { ...WAL2JSON, publication: 'p' },
      "Option publication: belongs to the decoder 'pgoutput', and the decoder is 'wal2json': remove one of the two.",
    ],
    [
      { ...PGLOGICAL, tables: [] },
      "Option tables: belongs to the decoder 'wal2json', and the decoder is 'pglogical': remove one of the two.",
    ],
    [{ decoder: 'pglogical' }, `Option replicationSets: ${NAMES}`],
    [
      { ...PGLOGICAL, replicationSets: null },
      `Option replicationSets: ${NAMES}`,
    ],
    [{ ...PGLOGICAL, replicationSets: [] }, `Option replicationSets: ${NAMES}`],
    [{ ...PGLOGICAL, replicationSets: '' }, `Option replicationSets: ${NAMES}`],
    [
      { ...PGLOGICAL, replicationSets: ['a', 5] },
      `Option replicationSets: ${NAMES}`,
    ],
    [
      { ...PGLOGICAL, replicationSets: 'a\0' },
      `Option replicationSets: ${NAMES}`,
    ],
    [
      { ...PGLOGICAL, replicationSets: ['a', 'b', 'a'] },
      'Option replicationSets: names a replication set twice; name each once.',
    ],
    [
      { ...PGLOGICAL, replicationSet: 'a' },
      'Option replicationSet: is called replicationSets, which may be one name.',
    ],
    [{ decoder: 'wal2json' }, `Option tables: ${PAIRS}`],
    [{ ...WAL2JSON, tables: 'public.t' }, `Option tables: ${PAIRS}`],
    [{ ...WAL2JSON, tables: [] }, `Option tables: ${PAIRS}`],
    [{ ...WAL2JSON, tables: ['public', 't'] }, `Option tables: ${PAIRS}`],
    [{ ...WAL2JSON, tables: ['public.t'] }, `Option tables: ${PAIRS}`],
    [{ ...WAL2JSON, tables: [['t']] }, `Option tables: ${PAIRS}`],
    [{ ...WAL2JSON, tables: [['a', 'b', 'c']] }, `Option tables: ${PAIRS}`],
    [{ ...WAL2JSON, tables: [['public', '']] }, `Option tables: ${PAIRS}`],
    [{ ...WAL2JSON, tables: [['public', 't\0']] }, `Option tables: ${PAIRS}`],
    [
      { ...WAL2JSON, tables: [['public', 't'], null] },
      `Option tables: ${PAIRS}`,
    ],
    [
      {
        ...WAL2JSON,
        tables: [
          ['public', 't'],
          ['public', 'u'],
          ['public', 't'],
        ],
      },
      'Option tables: names a table twice; name each once.',
    ],
    [{ ...WAL2JSON, allowKeylessTables: 1 }, 'Option allowKeylessTables: '],
    [{ ...WAL2JSON, allowKeylessTables: null }, 'Option allowKeylessTables: '],
    [{ ...WAL2JSON, schemaCheckInterval: 0 }, 'Option schemaCheckInterval: '],
    [{ ...WAL2JSON, schemaCheckInterval: 0.5 }, 'Option schemaCheckInterval: '],
    [{ ...WAL2JSON, schemaCheckInterval: '1' }, 'Option schemaCheckInterval: '],
    [
      { ...WAL2JSON, schemaCheckInterval: 2 ** 31 },
      'Option schemaCheckInterval: ',
    ],
    [
      { ...WAL2JSON, schemaCheckInterval: Number.POSITIVE_INFINITY },
      'Option schemaCheckInterval: ',
    ],
  ];

  it.each(MISFITS)('are refused by name: %j', (options, message) => {
    expect(refusalOf(options).message).toContain(message);
  });

  it('are checked in the order of their documentation: decoder, publication, sets, tables', () => {
    const all = {
      slotName: 'S',
      decoder: 'x',
      publication: 'p',
      tables: [],
      replicationSets: [],
      schemaCheckInterval: 0,
      checkpointStore: 5,
    };
    const repairs = [
      ['slotName', { slotName: 's' }],
      ['decoder', { decoder: 'wal2json' }],
      ['publication', { publication: undefined }],
      ['replicationSets', { replicationSets: undefined }],
      ['tables', { tables: [['public', 't']] }],
      ['schemaCheckInterval', { schemaCheckInterval: 1 }],
    ] as const;
    let options: object = all;
    for (const [option, repair] of repairs) {
      expect(refusalOf(options)).toMatchObject({ option });
      options = { ...options, ...repair };
    }
    expect(refusalOf(options)).toMatchObject({ option: 'checkpointStore' });
  });

  it('never quotes what was given', () => {
    for (const options of [
      { ...PGLOGICAL, replicationSets: ['planted', ''] },
      { ...WAL2JSON, tables: [['planted', '']] },
      { ...WAL2JSON, schemaCheckInterval: 'planted' },
      { decoder: 'planted' },
    ])
      expect(refusalOf(options).message).not.toContain('planted');
  });

  it('leave what they are given alone', () => {
    const tables = Object.freeze([Object.freeze(['public', 't'] as const)]);
    expect(resolveDecoder({ decoder: 'wal2json', tables })).toMatchObject({
      tables: [['public', 't']],
    });
  });
});

describe('what a decoder can do', () => {
  const STREAMING = { streaming: {} };
  const MESSAGES = { messages: true };
  const FAILOVER = { failover: true };

  it.each([
    [{ publication: 'p', ...STREAMING, ...MESSAGES, ...FAILOVER }],
    [{ ...WAL2JSON, ...MESSAGES }],
    [{ ...WAL2JSON, streaming: null, failover: false }],
    [{ ...PGLOGICAL, streaming: null, messages: false, failover: false }],
    [{ ...WAL2JSON, snapshot: { mode: 'incremental' }, types: 'text' }],
    [{ ...PGLOGICAL, snapshot: true, batchDelivery: {}, sinkRetry: {} }],
    [
      {
        ...PGLOGICAL,
        leaderElection: true,
        checkpointStore: { connection: 'postgresql://db/shop', batch: {} },
      },
    ],
  ])('is taken: %j', (options) => {
    expect(() => resolveOptions(untyped(options))).not.toThrow();
  });

  it.each([
    ['streaming', { ...WAL2JSON, ...STREAMING, ...FAILOVER }, 'wal2json'],
    ['failover', { ...WAL2JSON, ...MESSAGES, ...FAILOVER }, 'wal2json'],
    [
      'streaming',
      { ...PGLOGICAL, ...STREAMING, ...MESSAGES, ...FAILOVER },
      'pglogical',
    ],
    ['messages', { ...PGLOGICAL, ...MESSAGES, ...FAILOVER }, 'pglogical'],
    ['failover', { ...PGLOGICAL, ...FAILOVER }, 'pglogical'],
  ])('is not %s in %j', (option, options, decoder) => {
    const refusal = refusalOf(options);
    expect(refusal).toMatchObject({ name: 'ReplicantConfigError', option });
    expect(refusal.message).toContain(
      `cannot be had with the decoder '${decoder}': remove it, or use the decoder 'pgoutput'.`,
    );
  });
});
