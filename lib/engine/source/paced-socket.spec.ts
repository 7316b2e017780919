import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import tls from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isTcp } from './paced-socket.js';

/** Connects to a server that accepts and says nothing. */
async function connectTo(address: net.ListenOptions): Promise<net.Socket> {
  const peers: net.Socket[] = [];
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
