import type { Place, Statement } from './place.js';

const TYPES_OF_MARKS = ['int', 'bigint', 'numeric', 'text'] as const;

export function truncate(place: Place): Statement | null {
  if (!place.own()) return null;
  const names = [place.table, ...place.ownMore()].map(({ name }) => name);
  const more = place.random.below(4) === 0 ? ' restart identity cascade' : '';
  return {
    sql: `truncate ${names.join(', ')}${more}`,
    traces: names.map((name) => ({ of: `${name} truncated`, rows: 1 })),
  };
}

/** Changes the shape of the table. */
export function alter(place: Place): Statement | null {
  if (!place.own()) return null;
  return { sql: place.random.of(ALTERATIONS)(place), traces: [] };
}

const ALTERATIONS = [
  addText,
  ({ name, mark }: Place): string => add(name, mark, 'mood', `'sad'`),
  /** A type that is as new as the column. */
  ({ name, mark }: Place): string =>
    `create type ${name}_m${mark} as enum ('one', 'other'); ${add(name, mark, `${name}_m${mark}[]`, `'{one,other}'`)}`,
  dropColumn,
  dropColumn,
  ({ name, random }: Place): string => {
    const type = random.of(TYPES_OF_MARKS);
    return `alter table ${name} alter column mark type ${type} using mark::text::${type}`;
  },
  ({ name, mark }: Place): string =>
    `alter table ${name} alter column v type varchar(${50_000 + mark})`,
  ({ name, random }: Place): string =>
    `alter table ${name} replica identity ${random.of(['full', 'default'])}`,
] as const;

function addText({ name, mark }: Place): string {
  return add(name, mark, 'text', `'added by ${mark}'`);
}

/** Rows that are there already get no value: nothing of them is sent. */
function add(table: string, mark: number, type: string, value: string): string {
  return `alter table ${table} add column c${mark} ${type}, alter column c${mark} set default ${value}`;
}

/** One that was added, when there is one. No name comes twice, since a sink may still have what was under it. */
function dropColumn({ name }: Place): string {
  return `do $$ declare one text; begin
    select attname into one from pg_attribute where attrelid = '${name}'::regclass and attname like 'c%' and attnum > 0 and not attisdropped order by attnum limit 1;
    if one is not null then execute 'alter table ${name} drop column ' || one; end if;
  end $$`;
}
