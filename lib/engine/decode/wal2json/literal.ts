/** Bytes that documents have again and again. */
export class Literal {
  readonly length: number;
  readonly #view: DataView;

  /** @param bytes - which nobody changes any more */
  constructor(bytes: Buffer) {
    this.length = bytes.length;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Whether the bytes are there. They must not reach beyond the end of the view. */
  isAt(at: number, view: DataView): boolean {
    const { length } = this;
    let i = 0;
    for (; i + 4 <= length; i += 4) {
      if (view.getUint32(at + i) !== this.#view.getUint32(i)) return false;
    }
    for (; i < length; i++) {
      if (view.getUint8(at + i) !== this.#view.getUint8(i)) return false;
    }
    return true;
  }
}

export function literal(text: string): Literal {
  return new Literal(Buffer.from(text));
}
