import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import tls from 'node:tls';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { isTcp, pauseAtOnce } from './paced-socket.js';

/** Connects to a server that accepts and says nothing. */
async function connectTo(
  address: net.ListenOptions,
  peers: net.Socket[] = [],
): Promise<net.Socket> {
  const server = net.createServer((peer) => peers.push(peer));
  await once(server.listen(address), 'listening');
  const bound = server.address();
  const socket =
    typeof bound === 'string'
      ? net.connect(bound)
      : net.connect(bound?.port ?? 0, '127.0.0.1');
  onTestFinished(() => {
    for (const peer of [socket, ...peers]) peer.destroy();
    server.close();
  });
  await once(socket, 'connect');
  return socket;
}

function unixPath(): string {
  if (platform() === 'win32') return `\\\\.\\pipe\\replicant-${process.pid}`;
  const folder = mkdtempSync(join(tmpdir(), 'socket-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 's');
}

describe('isTcp', () => {
  it('knows TCP, with TLS or without', async () => {
    const socket = await connectTo({ port: 0, host: '127.0.0.1' });
    expect(isTcp(socket)).toBe(true);
    const secure = tls.connect({ socket });
    secure.on('error', () => {});
    expect(isTcp(secure)).toBe(true);
    secure.destroy();
  });

  it('knows a Unix socket, with TLS or without', async () => {
    const socket = await connectTo({ path: unixPath() });
    expect(isTcp(socket)).toBe(false);
    const secure = tls.connect({ socket });
    secure.on('error', () => {});
    expect(isTcp(secure)).toBe(false);
    secure.destroy();
  });

  it("takes a stream of somebody's own for something else", () => {
    expect(isTcp(new PassThrough())).toBe(false);
  });
});

describe('pauseAtOnce', () => {
  it('lets a paused socket read once more at most', async () => {
    const peers: net.Socket[] = [];
    const socket = await connectTo({ port: 0, host: '127.0.0.1' }, peers);
    const arrivals: Buffer[] = [];
    pauseAtOnce(socket);
    socket.on('data', (chunk: Buffer) => arrivals.push(chunk));
    socket.pause();
    await vi.waitFor(() => expect(peers).toHaveLength(1));
    peers[0]?.setNoDelay(true);
    peers[0]?.write('a');
    await vi.waitFor(() => expect(socket.readableLength).toBe(1));
    peers[0]?.write('b');
    peers[0]?.write('c');
    // Long enough for a socket that goes on reading to read them.
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(socket.readableLength).toBe(1);
    expect(arrivals).toEqual([]);
    socket.resume();
    await vi.waitFor(() =>
      expect(Buffer.concat(arrivals).toString()).toBe('abc'),
    );
  });

  it("leaves a stream of somebody's own as it is", () => {
    const stream = {};
    pauseAtOnce(stream);
    expect(stream).toEqual({});
  });
});
