import type { DecodeFault } from '../decoder.js';

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
