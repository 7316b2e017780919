import { isName } from '../model/names.js';
import { ReplicantConfigError } from './config-error.js';
import { flag, milliseconds, oneOf } from './option-checks.js';

/** Name of the decoder: what reads the changes that an output plugin of the server writes. */
export type DecoderName = 'pgoutput' | 'wal2json' | 'pglogical';

/** A table by its schema and its name, both as they are: neither quoted nor folded to lower case. */
export type SchemaAndTable = readonly [schema: string, table: string];

/** The options that say what is captured, and by which output plugin. */
export interface DecoderOptions {
  /**
   * The output plugin of the server, and what reads it. `wal2json` (2.6 or later) and `pglogical` (2.4 or later) have to be installed on the
   * server; see docs/decoders.md.
   *
   * @default 'pgoutput'
   */
  decoder?: DecoderName;
  /** With `pgoutput`: the publication, or several whose union is streamed. They must exist. */
  publication?: string | readonly string[];
  /** With `pglogical`: the replication set, or several whose union is streamed. They must exist. */
  replicationSets?: string | readonly string[];
  /** With `wal2json`: the tables that are captured, at least one. They must exist; partitions are named one by one. */
  tables?: readonly SchemaAndTable[];
  /**
   * With `wal2json`: whether a table without a replica identity may be captured. The plugin leaves out its updates and deletes, so only
   * inserts and truncations come.
   *
   * @default false
   */
  allowKeylessTables?: boolean;
  /**
   * With `wal2json`: milliseconds between two looks at the catalog, for a column that was dropped of which the plugin shows nothing.
   *
   * @default 30000
   */
  schemaCheckInterval?: number;
}

/** {@link DecoderOptions} after validation. */
export type ResolvedDecoder =
  | { readonly name: 'pgoutput'; readonly publications: readonly string[] }
  | { readonly name: 'pglogical'; readonly replicationSets: readonly string[] }
  | {
      readonly name: 'wal2json';
      readonly tables: readonly SchemaAndTable[];
      readonly allowKeylessTables: boolean;
      readonly schemaCheckInterval: number;
    };

/** Which decoder each of these options belongs to. */
const OWNERS = [
  ['publication', 'pgoutput'],
  ['replicationSets', 'pglogical'],
  ['tables', 'wal2json'],
  ['allowKeylessTables', 'wal2json'],
  ['schemaCheckInterval', 'wal2json'],
] as const;

/**
 * Checks what is captured. An option of another decoder is refused, never ignored.
 *
 * @throws {ReplicantConfigError} for the first option that cannot work
 */
export function resolveDecoder(options: DecoderOptions): ResolvedDecoder {
  const name = oneOf<DecoderName>('decoder', options.decoder, [
    'pgoutput',
    'wal2json',
    'pglogical',
  ]);
  // Those of one decoder stand together.
  const first = OWNERS.findIndex(([, owner]) => owner === name);
  refuseOthers(options, name, OWNERS.slice(0, first));
  const resolved = resolveOwn(options, name);
  refuseOthers(options, name, OWNERS.slice(first));
  return resolved;
}

function refuseOthers(
  options: DecoderOptions,
  name: DecoderName,
  owners: readonly (typeof OWNERS)[number][],
): void {
  for (const [option, owner] of owners)
    if (options[option] !== undefined && owner !== name)
      throw new ReplicantConfigError(
        option,
        `belongs to the decoder '${owner}', and the decoder is '${name}': remove one of the two.`,
      );
}

function resolveOwn(
  options: DecoderOptions,
  name: DecoderName,
): ResolvedDecoder {
  switch (name) {
    case 'pgoutput':
      return {
        name,
        publications: names(
          'publication',
          'a publication',
          options.publication,
        ),
      };
    case 'pglogical':
      return {
        name,
        replicationSets: names(
          'replicationSets',
          'a replication set',
          options.replicationSets,
        ),
      };
    case 'wal2json':
      return {
        name,
        tables: tables(options.tables),
        allowKeylessTables: flag(
          'allowKeylessTables',
          options.allowKeylessTables,
          false,
        ),
        schemaCheckInterval: milliseconds(
          'schemaCheckInterval',
          options.schemaCheckInterval,
          30_000,
        ),
      };
  }
}

/** What only `pgoutput` can do. */
export function requireCapabilities(
  { name }: ResolvedDecoder,
  wanted: Readonly<Record<'messages' | 'streaming' | 'failover', boolean>>,
): void {
  if (name === 'pgoutput') return;
  for (const option of ['streaming', 'messages', 'failover'] as const) {
    if (!wanted[option] || (option === 'messages' && name === 'wal2json'))
      continue;
    throw new ReplicantConfigError(
      option,
      `cannot be had with the decoder '${name}': remove it, or use the decoder 'pgoutput'.`,
    );
  }
}

function names(
  option: string,
  what: string,
  value: unknown,
): readonly string[] {
  const given: readonly unknown[] = Array.isArray(value) ? value : [value];
  const valid = given.filter(
    (name): name is string => typeof name === 'string' && isName(name),
  );
  if (valid.length === 0 || valid.length !== given.length) {
    throw new ReplicantConfigError(
      option,
      `must be the name of ${what} or a list of at least one, each of 1 to 63 bytes.`,
    );
  }
  if (new Set(valid).size !== valid.length) {
    throw new ReplicantConfigError(
      option,
      `names ${what} twice; name each once.`,
    );
  }
  return valid;
}

function tables(value: unknown): readonly SchemaAndTable[] {
  const given: readonly unknown[] = Array.isArray(value) ? value : [];
  const valid = given.filter(isSchemaAndTable);
  if (valid.length === 0 || valid.length !== given.length) {
    throw new ReplicantConfigError(
      'tables',
      "must be a list of at least one pair of schema and table, such as ['public', 'orders'], each of 1 to 63 bytes.",
    );
  }
  if (new Set(valid.map((pair) => JSON.stringify(pair))).size < valid.length) {
    throw new ReplicantConfigError(
      'tables',
      'names a table twice; name each once.',
    );
  }
  return valid;
}

function isSchemaAndTable(value: unknown): value is SchemaAndTable {
  return (
    Array.isArray(value) &&
    value.length === 2 &&
    value.every((name) => typeof name === 'string' && isName(name))
  );
}
