import type { Client } from 'pg';
import type { Row } from '../../lib/engine/model/change.js';
import type { TypesOption } from '../../lib/engine/options/pipeline-options.js';
import { capture, type Capture } from './capture.js';
import { currentLsn } from './logical-slot.js';
import type { TestDatabase } from './test-database.js';
import { changesOf } from './changes-of.js';

/** The rows that were inserted into one table, in order, as three pipelines with different `types` gave them. */
export interface RowsByMode {
  readonly exact: readonly Row[];
  readonly pg: readonly Row[];
  readonly text: readonly Row[];
}

/** What a SELECT gives on a session with the documented settings, whatever the database says. */
export interface SelectedRows {
  /** As the `pg` module parses it. */
  readonly pg: readonly Row[];
  /** The server's text. */
  readonly text: readonly Row[];
}

/** As docs/values.md names them. */
const DOCUMENTED_SETTINGS = `
  set datestyle = 'ISO, YMD';
  set timezone = 'UTC';
  set intervalstyle = 'postgres';
  set extra_float_digits = 1;
  set bytea_output = 'hex';
  set lc_monetary = 'C';
  set client_encoding = 'UTF8';
  set search_path = '';
  set quote_all_identifiers = off`;

const AS_TEXT = { getTypeParser: () => (text: string) => text };

/** Runs the statements while three pipelines capture all tables, and gives what they delivered for the table `m`. */
export async function insertedByMode(
  source: TestDatabase,
  tables: string,
  statements: string,
): Promise<RowsByMode> {
  await source.query(`${tables}; create publication p for all tables`);
  const captures = {
    exact: await streaming(source, 'exact'),
    pg: await streaming(source, 'pg'),
    text: await streaming(source, 'text'),
  };
  await source.query(statements);
  const end = await currentLsn(source);
  await Promise.all(
    Object.values(captures).map(({ pipeline }) => pipeline.caughtUp(end)),
  );
  return {
    exact: rowsOf(captures.exact),
    pg: rowsOf(captures.pg),
    text: rowsOf(captures.text),
  };
}

/** Reads the table `m` in the order of `id`. */
export async function selectRows(source: TestDatabase): Promise<SelectedRows> {
  const client: Client = await source.connect();
  await client.query(DOCUMENTED_SETTINGS);
  const text = 'select * from public.m order by id';
  const { rows: parsed } = await client.query<Row>({ text });
  const { rows: texts } = await client.query<Row>({ text, types: AS_TEXT });
  return { pg: parsed, text: texts };
}

async function streaming(
  source: TestDatabase,
  types: TypesOption & string,
): Promise<Capture> {
  // Only values matter here: nothing is stored, so that nothing is fed back into the publication.
  const running = capture(source, {
    target: source,
    checkpoint: { kind: 'reader', read: async () => null },
    slotName: `${types}_${source.name}`,
    types,
  });
  running.pipeline.start();
  await running.pipeline.whenStreaming();
  return running;
}

function rowsOf({ applied }: Capture): Row[] {
  return applied.flatMap((transaction) =>
    changesOf(transaction).flatMap((change) =>
      change.op === 'insert' && change.table === 'm' ? [change.record] : [],
    ),
  );
}
