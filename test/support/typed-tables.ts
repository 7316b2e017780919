import { arrayText, SAMPLES } from './every-type.js';

/** SQL of a table and of its rows. It wants {@link NAMED_BY_SAMPLES}. */
export interface TypedTable {
  readonly table: string;
  readonly insert: string;
}

/** A table with a column for each built-in type and one for its array, and rows of all samples. */
export function builtinTypes(name: string): TypedTable {
  const columns = ['id int primary key'];
  const values: ((index: number) => string)[] = [(index) => String(index)];
  for (const [type, samples] of Object.entries(SAMPLES)) {
    const typeName = `pg_catalog."${type}"`;
    const delimiter = type === 'box' ? ';' : ',';
    const some = arrayText([...samples, null], delimiter);
    const arrays = [
      some,
      '{}',
      `[2:${samples.length + 2}]=${some}`,
      `{${some}${delimiter}${some}}`,
    ];
    columns.push(`"v_${type}" ${typeName}`, `"a_${type}" ${typeName}[]`);
    values.push(
      (index) =>
        `${literal(samples[index % samples.length] ?? '')}::${typeName}`,
      (index) =>
        `${literal(arrays[index % arrays.length] ?? '')}::${typeName}[]`,
    );
  }
  const rows = Array.from(
    { length: 12 },
    (_, index) => `(${values.map((value) => value(index)).join(', ')})`,
  );
  return {
    table: `create table ${name}(${columns.join(', ')})`,
    insert: `insert into ${name} values ${rows.join(', ')}; insert into ${name}(id) values (12)`,
  };
}

/** A table with a column for each kind of type that a user or an extension makes, and of their arrays. */
export function userTypes(name: string): TypedTable {
  return {
    table: `${TYPES}; create table ${name}(${COLUMNS})`,
    insert: `insert into ${name} values ${ROWS}`,
  };
}

const TYPES = `
  create extension hstore; create extension citext; create extension ltree;
  create domain whole as int check (value > 0); create domain wholes as whole[]; create domain lists as wholes;
  create domain feeling as s2.mood; create domain feelings as s2.mood[]; create domain loose as citext; create domain moment as timestamptz;
  create domain code as varchar(3); create domain flags as bool[]; create domain boxes as box[];
  create type addr as (street text, no int, "at" timestamptz); create type person as (name text, home addr, tags text[]);
  create type span as range (subtype = float8); create domain home as addr`;
const COLUMNS = `id int primary key, a s2.mood, b s2.mood[], c whole, d whole[], e wholes, f wholes[], g lists, h feeling, i feelings, j feeling[],
    k moment, l moment[], n code, o flags, p boxes, q boxes[], r addr, s person, t person[], u span, v span[], w span_multirange, x span_multirange[],
    y home, z home[], ha hstore, hb hstore[], ca citext, cb citext[], cc loose, cd loose[], la ltree, lb ltree[], ta s2."Odd"[],
    ia information_schema.sql_identifier, ib information_schema.yes_or_no[], ic information_schema.time_stamp`;
const ROWS = `  (1, 'sad', E'{sad,"wi,th \\\\"q\\\\"",NULL}', 7, '{1,2}', '{3,NULL}', '{"{4,5}","{}"}', '{6}', 'o''k', E'{"back\\\\\\\\slash"}', '{sad,NULL}',
   '2026-01-02 03:04:05.000001Z', '{"2026-01-02 03:04:05Z",infinity}', 'abc', '{t,f,NULL}', '{(1,1),(0,0);(3,3),(2,2)}', '{"{(1,1),(0,0);(3,3),(2,2)}"}',
   row(E'a\\\\b "c", (d)', null, 'infinity'), row(E'O"Brien\\t', row('', 1, '2026-01-02Z'), array['x,y', null, '']),
   array[row('n', row(E'\\\\', 1, null), null)::person, null], '[0.1,1e300)', '{"[-0,1)",empty}', '{[0.1,0.2),[3,)}', '{"{[0.1,0.2)}","{}"}',
   row('s', 1, null), array[row('s', 1, null)::addr::home, null], 'a=>1,b=>NULL,"q\\"k"=>"v,w"', array['a=>1'::hstore, null], 'MiXed', '{X,"y z"}', 'MiXed', '{X}',
   'a.b.c', '{a.b,c}', array[row()::s2."Odd"], 'name', '{YES,NO}', '2026-01-02 03:04:05.67Z'),
  (2, E'back\\\\slash', '{}', 1, '[2:3]={1,2}', '{}', '{}', '{}', 'sad', '{}', '{}', '-infinity', '{}', '', '{}', '{}', '{}', row(null, null, null), null, '{}',
   'empty', '{}', '{}', '{}', null, '{}', '', '{}', '', '{}', '', '{}', '', '{}', '{}', null, '{}', null)`;

function literal(text: string): string {
  return `E'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`;
}
