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
