import type { DecodeFault } from './decoder.js';
import { errorClass } from '../model/error-class.js';

/** Leaves the reading of a message; the decoder turns it into a {@link DecodeFault}. */
export class MalformedMessage extends Error {
  override readonly name = 'MalformedMessage';

  /** @param detail what is wrong with the structure, never a value */
  constructor(
    readonly detail: string,
    readonly code: DecodeFault['code'] = 'decode_failure',
  ) {
    super(detail);
  }
}

/** What became of reading a message, by the error that it ended with. */
export function faultOf(error: unknown, message: string): DecodeFault {
  return error instanceof MalformedMessage
    ? {
        kind: 'fault',
        code: error.code,
        detail: `${message}: ${error.detail}`,
      }
    : {
        kind: 'fault',
        code: 'decode_failure',
        detail: `${message}: ${errorClass(error)}`,
      };
}
