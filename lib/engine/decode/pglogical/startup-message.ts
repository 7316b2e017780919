import type { AsideMessage } from '../../model/replication-message.js';
import type { ByteReader } from '../byte-reader.js';
import { MalformedMessage } from '../malformed-message.js';

/** Of this message, and of the protocol that it is about. */
const VERSION = 1;

/** Reads what the plugin says of itself, and demands that it speaks the version of the protocol that this decoder reads. */
export function readStartup(reader: ByteReader): AsideMessage {
  if (reader.uint8() !== VERSION) {
    throw new MalformedMessage(
      'its format is not 1',
      'decoder/protocol_unsupported',
    );
  }
  const parameters = new Map<string, string>();
  while (reader.left > 0) parameters.set(reader.cstring(), reader.cstring());
  const oldest = versionIn(parameters, 'min_proto_version');
  const newest = versionIn(parameters, 'max_proto_version');
  if (oldest > VERSION || newest < VERSION) {
    throw new MalformedMessage(
      `the plugin speaks the versions ${oldest} to ${newest} of its protocol`,
      'decoder/protocol_unsupported',
    );
  }
  return { kind: 'aside' };
}

function versionIn(
  parameters: ReadonlyMap<string, string>,
  name: string,
): number {
  const text = parameters.get(name) ?? '';
  if (!/^\d{1,9}$/.test(text)) {
    throw new MalformedMessage(`${name} is no number`);
  }
  return Number(text);
}
