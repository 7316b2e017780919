import pg, { type Client, type ClientConfig, type CustomTypesConfig } from 'pg';
import type { ConnectionOption } from '../options/pipeline-options.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { deferred } from '../model/deferred.js';
import { errorClass } from '../model/error-class.js';
import type { SourceWait } from '../telemetry/source-wait.js';
import type { CopyDataListener } from './copy-data-splitter.js';
import {
  containParser,
  destroySocket,
  liftReadTimeout,
  readAsText,
} from './pg-internals.js';
import { pinSettingsSql } from './session-settings.js';

/** A row of a session of the library: every value is the server's text. */
export type TextRow = Readonly<Record<string, string | null>>;

/** Runs statements and replication commands. */
export interface CommandSession {
  /** Cuts the connection when the answer does not come within half a minute. */
  query(text: string, values?: readonly unknown[]): Promise<readonly TextRow[]>;
  /** For a command that may wait for others, as the creation of a slot waits for old transactions. */
  queryPatiently(text: string): Promise<readonly TextRow[]>;
}

/** How the library connects: the user's settings, the name of the session, and the end of patience. */
export interface SessionTarget {
  readonly connection: ConnectionOption;
  readonly applicationName: string;
  /** Aborted when the pipeline stops; a session that still connects is then torn down. */
  readonly signal: AbortSignal;
  /** Is told what copying rows waits for on the source; `null` when it does not any more. */
  readonly waiting?: (wait: SourceWait | null) => void;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** Longer than any answer takes on a live connection. */
export const ANSWER_TIMEOUT_MS = 30_000;
const CLOSE_TIMEOUT_MS = 1_000;
/** Silence after which the operating system looks whether the other side is there; by its own default after two hours. */
const KEEP_ALIVE_DELAY_MS = 30_000;
const AS_TEXT: CustomTypesConfig = { getTypeParser: () => String };

/**
 * Connects a client of `pg` with pinned settings; `replication` makes it a session of a WAL sender.
 *
 * @param copyData - gets the CopyData messages of the session
 */
export async function openClient(
  target: SessionTarget,
  kind: 'sql' | 'replication',
  copyData: CopyDataListener | null = null,
): Promise<Client> {
  target.signal.throwIfAborted();
  const settings = await resolveSettings(target);
  target.signal.throwIfAborted();
  const client = createClient(settings, kind);
  liftReadTimeout(client);
  readAsText(client);
  containParser(client, copyData);
  // A lost connection rejects the running query and emits `error`; without a listener that would end the process.
  client.on('error', ignore);
  try {
    await tornDownOnAbort(client, target.signal, async () => {
      await client.connect();
      await commandSession(client).query(
        pinSettingsSql(target.applicationName, kind),
      );
    });
    target.signal.throwIfAborted();
    return client;
  } catch (error) {
    destroySocket(client);
    throw error;
  }
}

/** Runs `work`, and cuts the connection of the client when the signal is aborted meanwhile. */
export async function tornDownOnAbort<T>(
  client: Client,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const tearDown = (): void => destroySocket(client);
  signal.addEventListener('abort', tearDown, { once: true });
  try {
    return await work();
  } finally {
    signal.removeEventListener('abort', tearDown);
  }
}

/** Runs `work` on a short-lived ordinary session. */
export function withSqlSession<T>(
  target: SessionTarget,
  work: (session: CommandSession) => Promise<T>,
): Promise<T> {
  return withClient(target, (client) => work(commandSession(client)));
}

/** Runs `work` with a client that is connected for a short time. */
export async function withClient<T>(
  target: SessionTarget,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await openClient(target, 'sql');
  try {
    return await tornDownOnAbort(client, target.signal, () => work(client));
  } finally {
    await closeClient(client);
  }
}

/** Says goodbye to the server, and cuts the socket when it does not answer in time. Never rejects. */
export async function closeClient(
  client: Client,
  timeoutMs = CLOSE_TIMEOUT_MS,
): Promise<void> {
  const timer = setTimeout(() => destroySocket(client), timeoutMs);
  try {
    await client.end();
  } catch {
    destroySocket(client);
  } finally {
    clearTimeout(timer);
  }
}

/** The statements of a client, with every value as text. */
export function commandSession(client: Client): CommandSession {
  return {
    async query(text, values) {
      const timer = setTimeout(() => destroySocket(client), ANSWER_TIMEOUT_MS);
      try {
        const result = await client.query<TextRow>(
          text,
          values === undefined ? undefined : [...values],
        );
        return result.rows;
      } finally {
        clearTimeout(timer);
      }
    },
    async queryPatiently(text) {
      const result = await client.query<TextRow>(text);
      return result.rows;
    },
  };
}

async function resolveSettings({
  connection,
  signal,
}: SessionTarget): Promise<ClientConfig> {
  const settings =
    typeof connection === 'function'
      ? await callConnection(connection, signal)
      : connection;
  return typeof settings === 'string'
    ? { connectionString: settings }
    : settings;
}

async function callConnection(
  connection: Extract<ConnectionOption, () => unknown>,
  signal: AbortSignal,
): Promise<string | ClientConfig> {
  const late = deferred<null>();
  const giveUp = (): void => late.resolve(null);
  const timer = setTimeout(giveUp, ANSWER_TIMEOUT_MS);
  signal.addEventListener('abort', giveUp, { once: true });
  let settings: string | ClientConfig | null | undefined;
  try {
    settings = await Promise.race([connection(), late.promise]);
  } catch (error) {
    // The message may hold a secret: only the class of the error travels on.
    throw new ConnectionFault(
      `the connection function failed with ${errorClass(error)}`,
    );
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', giveUp);
  }
  // pg would connect to its own defaults.
  if (settings === null || settings === undefined)
    throw new ConnectionFault('the connection function gave no settings');
  return settings;
}

function createClient(
  settings: ClientConfig,
  kind: 'sql' | 'replication',
): Client {
  try {
    return new pg.Client(clientConfig(settings, kind));
  } catch (error) {
    // The message may quote the settings.
    throw new ConnectionFault(
      `the connection settings cannot be used (${errorClass(error)})`,
    );
  }
}

function clientConfig(
  settings: ClientConfig,
  kind: 'sql' | 'replication',
): ClientConfig & { replication?: string } {
  const config = {
    ...settings,
    // Set to undefined they would be off.
    connectionTimeoutMillis:
      settings.connectionTimeoutMillis ?? CONNECT_TIMEOUT_MS,
    keepAlive: settings.keepAlive ?? true,
    keepAliveInitialDelayMillis:
      settings.keepAliveInitialDelayMillis ?? KEEP_ALIVE_DELAY_MS,
    types: AS_TEXT,
  };
  return kind === 'replication'
    ? { ...config, replication: 'database' }
    : config;
}

function ignore(): void {
  // The loss is reported by the rejection of the running query or by the `end` event.
}
