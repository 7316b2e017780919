/** What pacing needs of a socket. */
export interface PacedSocket {
  /** Bytes that Node has read and not yet handed over. */
  readonly readableLength: number;
  on(event: 'data', listener: (chunk: Buffer) => void): unknown;
  off(event: 'data', listener: (chunk: Buffer) => void): unknown;
}

/**
 * Whether a connected socket is TCP, with TLS or without. A TLS socket asks the one beneath it for its peer, and only TCP
 * has a remote address: neither a Unix socket nor a stream of somebody's own.
 */
export function isTcp(socket: object): boolean {
  return 'remoteAddress' in socket && typeof socket.remoteAddress === 'string';
}

/**
 * Lets a pause take effect with the next read. Node reads on while a socket is paused, message by message, until its
 * buffer is full; with Node 22 and later that takes 64 kB, more than a rest gathers. Only the constructor takes the size
 * of the buffer, and `pg` calls that; where Node should keep it elsewhere one day, pauses are less effective.
 */
export function pauseAtOnce(socket: object): void {
  const state: unknown = Reflect.get(socket, '_readableState');
  if (
    typeof state === 'object' &&
    state !== null &&
    'highWaterMark' in state &&
    typeof state.highWaterMark === 'number'
  )
    Reflect.set(state, 'highWaterMark', 1);
}
