/** Builds documents as wal2json writes them in format version 2, with the options that the decoder asks for. */

/** A value as it stands in the document: text, NULL, boolean, or what the plugin never writes. */
export type DocumentValue = string | number | boolean | null | object;

export interface DocumentColumn {
  readonly name: string;
  /** Default: `text`. */
  readonly type?: string;
  /** Default: 25, `text`. */
  readonly typeOid?: number;
  readonly value?: DocumentValue;
}

export interface DocumentRow {
  readonly schema?: string;
  readonly table?: string;
  readonly columns?: readonly DocumentColumn[];
  readonly identity?: readonly DocumentColumn[];
  /** Names of the columns of the primary key. Default: `id`. */
  readonly key?: readonly string[];
}

/** Columns with a text, or an `integer` where the name begins with `n`. */
export function columnsOf(...names: readonly string[]): DocumentColumn[] {
  return names.map((name) =>
    name.startsWith('n')
      ? { name, type: 'integer', typeOid: 23, value: '1' }
      : { name, value: 'x' },
  );
}

const TIME = '2026-01-02 03:04:05.123456+00';

export function document(members: object): Buffer {
  return Buffer.from(JSON.stringify(members));
}

export function beginDocument(
  members: { xid?: number; timestamp?: string } = {},
): Buffer {
  return document({
    action: 'B',
    xid: 700,
    timestamp: TIME,
    lsn: '0/A',
    nextlsn: '0/14',
    ...members,
  });
}

export function commitDocument(members: object = {}): Buffer {
  return document({
    action: 'C',
    xid: 700,
    timestamp: TIME,
    lsn: '0/A',
    nextlsn: '0/14',
    ...members,
  });
}

export function messageDocument(
  prefix: string,
  content: string,
  transactional = true,
): Buffer {
  return document({
    action: 'M',
    xid: transactional ? 700 : null,
    timestamp: transactional ? TIME : null,
    lsn: '0/5',
    transactional,
    prefix,
    content,
  });
}

export function insertDocument(row: DocumentRow): Buffer {
  return rowDocument('I', row);
}

export function updateDocument(row: DocumentRow): Buffer {
  return rowDocument('U', row);
}

export function deleteDocument(row: DocumentRow): Buffer {
  return rowDocument('D', row);
}

export function truncateDocument(table = 't', schema = 'public'): Buffer {
  return document({
    action: 'T',
    xid: 700,
    timestamp: TIME,
    lsn: '0/5',
    schema,
    table,
  });
}

function rowDocument(
  action: 'I' | 'U' | 'D',
  {
    schema = 'public',
    table = 't',
    columns,
    identity,
    key = ['id'],
  }: DocumentRow,
): Buffer {
  return document({
    action,
    xid: 700,
    timestamp: TIME,
    lsn: '0/5',
    schema,
    table,
    columns: columns?.map(columnMembers),
    identity: identity?.map(columnMembers),
    pk: key.map((name) => ({ name, type: 'integer', typeoid: 23 })),
  });
}

function columnMembers({
  name,
  type = 'text',
  typeOid = 25,
  value = null,
}: DocumentColumn): object {
  return { name, type, typeoid: typeOid, value };
}
