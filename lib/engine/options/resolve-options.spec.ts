import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PipelineOptions } from './pipeline-options.js';
import { resolveOptions } from './resolve-options.js';

const LEAST: PipelineOptions = {
  connection: 'postgresql://db/shop',
  slotName: 'orders',
  publication: 'p',
};

/** Options as a program without types would pass them. */
function untyped(options: object): PipelineOptions {
  return { ...LEAST, ...options };
}

describe('resolveOptions', () => {
  it('fills in the defaults', () => {
    expect(resolveOptions(LEAST)).toEqual({
      slotName: 'orders',
      decoder: { name: 'pgoutput', publications: ['p'] },
      checkpointStore: null,
      batchDelivery: null,
      messages: false,
      streaming: null,
      sinkRetry: { maxRetries: 0, backoffMs: 1000 },
      goForwardOnly: false,
      snapshot: null,
      types: 'exact',
      maxInflightBytes: 16_777_216,
      readPacing: true,
      maxCommandRetries: 5,
      failover: false,
      leaderElection: false,
      onHalt: 'stay',
      startup: 'background',
      autoStart: true,
      drainTimeout: 10_000,
      health: {
        readiness: 'strict',
        livenessOnHalt: 'up',
        reconnectGrace: 60_000,
        maxLagBytes: 1_073_741_824,
        maxLagMilliseconds: 300_000,
        maxRetainedBytes: 10_737_418_240,
        minSafeWalFraction: 0.5,
        stalledAfter: 600_000,
        cacheFor: 10_000,
        timeout: 5_000,
      },
      around: null,
    });
  });

  it('keeps what is given', () => {
    const around = async (): Promise<void> => {};
    const types = { getTypeParser: () => String };
    const connection = (): string => 'postgresql://db/shop';
    const given = resolveOptions({
      connection,
      slotName: '1',
      publication: ['p', 'Größe'],
      goForwardOnly: true,
      types,
      maxInflightBytes: 1,
      readPacing: true,
      maxCommandRetries: 0,
      checkpointStore: {
        connection,
        table: 'positions',
        maxRetries: 0,
        retryBackoffMs: 2,
        batch: { maxTransactions: 3, maxDelayMs: 4 },
      },
      messages: true,
      streaming: {
        maxConcurrentTxns: 1,
        spill: { dir: '/var/spill', maxSpillBytes: 2, encrypt: true },
      },
      sinkRetry: { maxRetries: 5, backoffMs: 6 },
      failover: true,
      leaderElection: true,
      onHalt: 'exit',
      startup: 'wait',
      autoStart: false,
      drainTimeout: 1,
      health: {
        readiness: 'lenient',
        livenessOnHalt: 'down',
        reconnectGrace: 1,
        maxLagBytes: 2,
        maxLagMilliseconds: 3,
        maxRetainedBytes: 4,
        minSafeWalFraction: 0.9,
        stalledAfter: 5,
        cacheFor: 6,
        timeout: 7,
      },
      around,
    });
    expect(given).toEqual({
      checkpointStore: {
        table: 'positions',
        maxRetries: 0,
        retryBackoffMs: 2,
        batch: { maxTransactions: 3, maxDelayMs: 4 },
      },
      batchDelivery: null,
      messages: true,
      streaming: {
        maxConcurrentTxns: 1,
        spill: { dir: resolve('/var/spill'), maxSpillBytes: 2, encrypt: true },
      },
      sinkRetry: { maxRetries: 5, backoffMs: 6 },
      slotName: '1',
      decoder: { name: 'pgoutput', publications: ['p', 'Größe'] },
      goForwardOnly: true,
      snapshot: null,
      types,
      maxInflightBytes: 1,
      readPacing: true,
      maxCommandRetries: 0,
      failover: true,
      leaderElection: true,
      onHalt: 'exit',
      startup: 'wait',
      autoStart: false,
      drainTimeout: 1,
      health: {
        readiness: 'lenient',
        livenessOnHalt: 'down',
        reconnectGrace: 1,
        maxLagBytes: 2,
        maxLagMilliseconds: 3,
        maxRetainedBytes: 4,
        minSafeWalFraction: 0.9,
        stalledAfter: 5,
        cacheFor: 6,
        timeout: 7,
      },
      around,
    });
  });

  it('takes null for what is not given, where that switches something off', () => {
    const off = {
      checkpointStore: null,
      batchDelivery: null,
      sinkRetry: null,
      snapshot: null,
      around: null,
    };
    expect(resolveOptions({ ...LEAST, ...off })).toEqual(resolveOptions(LEAST));
    const checkpointStore = { connection: LEAST.connection, batch: null };
    expect(
      resolveOptions({ ...LEAST, checkpointStore }).checkpointStore?.batch,
    ).toBeNull();
  });

  it('switches limits of health off by false', () => {
    const { health } = resolveOptions({
      ...LEAST,
      health: {
        maxLagBytes: false,
        maxLagMilliseconds: false,
        maxRetainedBytes: false,
        minSafeWalFraction: false,
        stalledAfter: false,
      },
    });
    expect(health).toMatchObject({
      maxLagBytes: null,
      maxLagMilliseconds: null,
      maxRetainedBytes: null,
      minSafeWalFraction: null,
      stalledAfter: null,
      cacheFor: 10_000,
    });
  });

  it.each([
    ['connection', undefined],
    ['connection', ''],
    ['connection', 'postgresql://u:p@ss:w/rd@[bad:5432/x'],
    ['connection', {}],
    ['connection', 5],
    ['slotName', undefined],
    ['slotName', 'My-Slot'],
    ['slotName', 'x" --'],
    ['slotName', 'a\n'],
    ['slotName', 's'.repeat(64)],
    ['publication', undefined],
    ['publication', ''],
    ['publication', []],
    ['publication', ['p', '']],
    ['publication', ['p', 5]],
    ['publication', ['p', 'p']],
    ['publication', 'x'.repeat(64)],
    ['goForwardOnly', 'true'],
    ['goForwardOnly', 1],
    ['types', 'Exact'],
    ['types', {}],
    ['maxInflightBytes', 0],
    ['maxInflightBytes', 1.5],
    ['maxInflightBytes', Number.POSITIVE_INFINITY],
    ['maxInflightBytes', '1'],
    ['readPacing', 'off'],
    ['maxCommandRetries', -1],
    ['maxCommandRetries', 0.5],
    ['maxCommandRetries', '5'],
    ['failover', 1],
    ['failover', null],
    ['leaderElection', 'yes'],
    ['onHalt', 'restart'],
    ['onHalt', null],
    ['startup', 'later'],
    ['autoStart', null],
    ['drainTimeout', -1],
    ['drainTimeout', 2 ** 31],
    ['around', {}],
    ['slotname', 'orders'],
  ])('refuses %s: %j, naming the option', (option, value) => {
    const refused = (): unknown => resolveOptions(untyped({ [option]: value }));
    expect(refused).toThrow(
      expect.objectContaining({ name: 'ReplicantConfigError', option }),
    );
  });

  it.each([
    ['readiness', 'loose'],
    ['livenessOnHalt', true],
    ['reconnectGrace', 0],
    ['reconnectGrace', false],
    ['maxLagBytes', 0],
    ['maxLagBytes', true],
    ['maxLagMilliseconds', '1'],
    ['maxRetainedBytes', -1],
    ['minSafeWalFraction', 1],
    ['minSafeWalFraction', 0],
    ['minSafeWalFraction', Number.NaN],
    ['stalledAfter', null],
    ['cacheFor', 2 ** 31],
    ['timeout', 0.5],
    ['interval', 1],
  ])('refuses health.%s: %j, naming the option', (option, value) => {
    const refused = (): unknown =>
      resolveOptions(untyped({ health: { [option]: value } }));
    expect(refused).toThrow(
      expect.objectContaining({
        name: 'ReplicantConfigError',
        option: `health.${option}`,
      }),
    );
  });

  it.each([null, 5, []])('refuses health: %j', (health) => {
    expect(() => resolveOptions(untyped({ health }))).toThrow('Option health:');
  });

  const SPILL = {
    dir: join(tmpdir(), 'nestjs_replicant_spill'),
    maxSpillBytes: 268_435_456,
    encrypt: false,
  };

  it.each([
    [{}, { maxConcurrentTxns: 64, spill: null }],
    [
      { maxConcurrentTxns: 1, spill: null },
      { maxConcurrentTxns: 1, spill: null },
    ],
    [{ spill: {} }, { maxConcurrentTxns: 64, spill: SPILL }],
    [
      { spill: { dir: 'spill', encrypt: true } },
      {
        maxConcurrentTxns: 64,
        spill: { ...SPILL, dir: resolve('spill'), encrypt: true },
      },
    ],
    [
      { spill: { dir: '/mnt/../var/spill/', maxSpillBytes: 1 } },
      {
        maxConcurrentTxns: 64,
        spill: { ...SPILL, dir: resolve('/var/spill'), maxSpillBytes: 1 },
      },
    ],
    [null, null],
    [undefined, null],
  ])('takes streaming: %j', (streaming, expected) => {
    expect(resolveOptions(untyped({ streaming })).streaming).toEqual(expected);
  });

  it('lets as much wait on disk as the memory for it says', () => {
    const { streaming } = resolveOptions(
      untyped({ maxInflightBytes: 1000, streaming: { spill: {} } }),
    );
    expect(streaming?.spill?.maxSpillBytes).toBe(16_000);
  });

  it.each([
    ['streaming', true],
    ['streaming', false],
    ['streaming', 'on'],
    ['streaming', []],
    ['streaming.maxConcurrentTxns', { maxConcurrentTxns: 0 }],
    ['streaming.maxConcurrentTxns', { maxConcurrentTxns: '64' }],
    ['streaming.parallel', { parallel: true }],
    ['streaming.spill', { spill: true }],
    ['streaming.spill', { spill: '/var/spill' }],
    ['streaming.spill', { spill: [] }],
    ['streaming.spill.dir', { spill: { dir: '' } }],
    ['streaming.spill.dir', { spill: { dir: null } }],
    ['streaming.spill.dir', { spill: { dir: '/var/\0' } }],
    ['streaming.spill.maxSpillBytes', { spill: { maxSpillBytes: 0.5 } }],
    ['streaming.spill.encrypt', { spill: { encrypt: 'aes' } }],
    ['streaming.spill.folder', { spill: { folder: '/var' } }],
  ])('refuses %s, given %j', (option, streaming) => {
    expect(() => resolveOptions(untyped({ streaming }))).toThrow(
      expect.objectContaining({ name: 'ReplicantConfigError', option }),
    );
  });

  it.each([
    [true, { mode: 'initial', parallelTables: 2 }],
    [{}, { mode: 'initial', parallelTables: 2 }],
    [
      { mode: 'initial', parallelTables: 1 },
      { mode: 'initial', parallelTables: 1 },
    ],
    [{ parallelTables: 8 }, { mode: 'initial', parallelTables: 8 }],
    [
      { mode: 'incremental' },
      { mode: 'incremental', chunkRows: 1000, maxPendingChunks: 4 },
    ],
    [
      { mode: 'incremental', chunkRows: 1, maxPendingChunks: 2 },
      { mode: 'incremental', chunkRows: 1, maxPendingChunks: 2 },
    ],
    [false, null],
    [null, null],
    [undefined, null],
  ])('takes snapshot: %j', (snapshot, expected) => {
    expect(resolveOptions(untyped({ snapshot })).snapshot).toEqual(expected);
  });

  it.each([
    ['snapshot', 'initial'],
    ['snapshot', 1],
    ['snapshot', []],
    ['snapshot', () => true],
    ['snapshot.mode', { mode: 'Incremental' }],
    ['snapshot.mode', { mode: null }],
    ['snapshot.mode', { mode: true }],
    ['snapshot.parallelTables', { parallelTables: 0 }],
    ['snapshot.parallelTables', { parallelTables: '2' }],
    ['snapshot.parallelTables', { mode: 'incremental', parallelTables: 2 }],
    ['snapshot.chunkRows', { mode: 'incremental', chunkRows: 0.5 }],
    ['snapshot.chunkRows', { chunkRows: 1000 }],
    ['snapshot.chunkRows', { mode: 'initial', chunkRows: 1000 }],
    ['snapshot.maxPendingChunks', { mode: 'incremental', maxPendingChunks: 0 }],
    ['snapshot.maxPendingChunks', { maxPendingChunks: 4 }],
    ['snapshot.chunks', { mode: 'incremental', chunks: 1 }],
  ])('refuses %s, given %j', (option, snapshot) => {
    expect(() => resolveOptions(untyped({ snapshot }))).toThrow(
      expect.objectContaining({ name: 'ReplicantConfigError', option }),
    );
  });

  it.each([
    [
      { snapshot: { chunkRows: 10 } },
      "Option snapshot.chunkRows: belongs to the mode 'incremental': write snapshot: { mode: 'incremental', chunkRows: … }, or leave it out.",
    ],
    [
      { snapshot: { mode: 'initial', maxPendingChunks: 2 } },
      "Option snapshot.maxPendingChunks: belongs to the mode 'incremental': write snapshot: { mode: 'incremental', maxPendingChunks: … }, or leave it out.",
    ],
    [
      { snapshot: { mode: 'incremental', parallelTables: 2 } },
      "Option snapshot.parallelTables: belongs to the mode 'initial', and the mode 'incremental' reads one table after the other: leave it out, or write snapshot: { mode: 'initial', parallelTables: … }.",
    ],
    [{ chunkRows: 10 }, 'Option chunkRows: belongs under snapshot.'],
    [
      { publications: ['p'] },
      'Option publications: is called publication, which may be a list.',
    ],
    [
      { maxDelayMs: 10 },
      'Option maxDelayMs: belongs under batchDelivery, or checkpointStore.batch.',
    ],
    [
      {
        checkpointStore: {
          connection: 'postgresql://db/shop',
          maxTransactions: 2,
        },
      },
      'Option checkpointStore.maxTransactions: belongs under checkpointStore.batch.',
    ],
    [
      { sinkRetry: { retryBackoffMs: 2 } },
      'Option sinkRetry.retryBackoffMs: is called backoffMs here.',
    ],
  ])('says of %j where it belongs', (options, message) => {
    expect(() => resolveOptions(untyped(options))).toThrow(message);
  });

  it('refuses a snapshot beside the consent to start without one', () => {
    for (const snapshot of [true, { mode: 'incremental' }])
      expect(() =>
        resolveOptions(untyped({ snapshot, goForwardOnly: true })),
      ).toThrow(
        'Option snapshot: copies the rows that exist already, and goForwardOnly leaves them out: remove one of the two.',
      );
    for (const snapshot of [false, null])
      expect(
        resolveOptions(untyped({ snapshot, goForwardOnly: true })).snapshot,
      ).toBeNull();
  });

  it('refuses options that are no object', () => {
    const refused = (): unknown => Reflect.apply(resolveOptions, null, [null]);
    expect(refused).toThrow('must be an object');
  });

  it('does not repeat an unknown option that is no name', () => {
    expect(() => resolveOptions(untyped({ 'pass word!': 1 }))).toThrow(
      'Option (unnamed): is not known',
    );
  });

  it('never repeats a value', () => {
    for (const option of ['connection', 'slotName', 'publication', 'types']) {
      const secret = option === 'connection' ? [] : 'the Secret!\0';
      const refused = (): unknown =>
        resolveOptions(untyped({ [option]: secret }));
      expect(refused).toThrow(option);
      expect(refused).not.toThrow('Secret');
    }
  });

  it('names the first option that cannot work', () => {
    expect(() =>
      resolveOptions(untyped({ drainTimeout: 0, slotName: '' })),
    ).toThrow('Option slotName');
  });
});
