import {
  Assembler,
  type AssemblerOptions,
} from '../../lib/engine/assemble/assembler.js';
import { RelationHistory } from '../../lib/engine/assemble/relation-history.js';
import { SchemaWatch } from '../../lib/engine/assemble/schema-watch.js';
import { PgoutputDecoder } from '../../lib/engine/decode/pgoutput/pgoutput-decoder.js';
import type { Catalog } from '../../lib/engine/pipeline/decoding.js';
import type {
  IntakePorts,
  PipelineIntake,
} from '../../lib/engine/pipeline/intake.js';
import { Positions } from '../../lib/engine/source/positions.js';
import { XLOG_DATA_HEADER } from '../../lib/engine/source/wire.js';

/** A catalog that has no tables, and the types that are given. */
export function typeCatalog(
  readTypes: Catalog['readTypes'] = async () => [],
): Catalog {
  return { readTypes, nameTypes: async () => [], readTable: async () => null };
}

/** A connection that takes everything and wants nothing, but for what is given. */
export function intakePorts(own: Partial<IntakePorts> = {}): IntakePorts {
  return {
    positions: new Positions(0n, false),
    makeDecoder: (types) => new PgoutputDecoder(types),
    catalog: typeCatalog(),
    rolledBack: () => Promise.resolve(false),
    rolledBackSince: () => Promise.resolve(false),
    takes: () => true,
    push: () => {},
    arrived: () => {},
    passedOver: () => {},
    keepalive: () => {},
    replaying: () => {},
    room: () => null,
    fail: () => {},
    ...own,
  };
}

export function assembler(own: Partial<AssemblerOptions> = {}): Assembler {
  return new Assembler({
    pipeline: 'p',
    slotName: 's',
    maxTransactionBytes: 10_000,
    maxMessageBytes: 1000,
    messages: true,
    skipThrough: null,
    passOver: null,
    schema: new SchemaWatch(new RelationHistory(), () => {}),
    drained: () => {},
    ...own,
  });
}

/** A frame of the stream with a payload of the output plugin. */
export function dataFrame(payload: Buffer): Buffer {
  const header = Buffer.alloc(XLOG_DATA_HEADER);
  header.write('w');
  return Buffer.concat([header, payload]);
}

export function keepaliveFrame(position: bigint, replyAsked = false): Buffer {
  const frame = Buffer.alloc(18);
  frame.write('k');
  frame.writeBigUInt64BE(position, 1);
  frame.writeUInt8(replyAsked ? 1 : 0, 17);
  return frame;
}

/** Gives all frames out of one buffer, which is overwritten as soon as they were taken. */
export function feedFrames(
  subject: PipelineIntake,
  frames: readonly Buffer[],
): void {
  const bytes = Buffer.concat(frames);
  let start = 0;
  for (const { length } of frames) {
    subject.take(bytes, start, start + length);
    start += length;
  }
  bytes.fill(0);
}

/** The same with payloads. */
export function feed(
  subject: PipelineIntake,
  payloads: readonly Buffer[],
): void {
  feedFrames(subject, payloads.map(dataFrame));
}
