import { PublicationSet } from '../lib/engine/server/capture/publication-set.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Halt, HaltError } from '../lib/engine/model/halt.js';
import { readPublishedTables } from '../lib/engine/server/published-tables.js';
import { requireReadable } from '../lib/engine/server/readable-tables.js';
import { reading, snapshotRows } from './support/snapshot-rows.js';
import { useServer } from './support/suite.js';
import type {
  DatabaseConnection,
  TestDatabase,
} from './support/test-database.js';

const suite = useServer();
const PASSWORD = 'planted-secret';

interface Reader {
  readonly source: TestDatabase;
  /** Quoted. */
  readonly role: string;
  readonly connection: DatabaseConnection;
}

/** A source, and a role with a name that has to be quoted; `ROLE` in the schema stands for it. */
async function reader(schema: string): Promise<Reader> {
  const source = await suite.database();
  const user = `Reader ${source.name}`;
  const role = `"${user}"`;
  await source.query(`create role ${role} login password '${PASSWORD}'`);
  onTestFinished(async () => {
    await source.query(`drop owned by ${role} cascade; drop role ${role}`);
  });
  await source.query(schema.replaceAll('ROLE', role));
  const connection = { ...source.connection, user, password: PASSWORD };
  return { source, role, connection };
}

/** Why the tables of `p` cannot be read; `null` when they can. */
async function obstacle(connection: DatabaseConnection): Promise<Halt | null> {
  return reading(connection, async ({ commands }) => {
    const tables = await readPublishedTables(commands, new PublicationSet(['p']));
    try {
      await requireReadable(commands, tables);
      return null;
    } catch (error) {
      if (error instanceof HaltError) return error.halt;
      throw error;
    }
  });
}

/** Runs the SQL of the halt as a superuser, and reads again. */
async function mend({ source, connection }: Reader): Promise<void> {
  const { detail = '' } = (await obstacle(connection)) ?? {};
  await source.query(/run: (.*)$/.exec(detail)?.[1] ?? '');
}

async function ids(connection: DatabaseConnection): Promise<unknown[]> {
  const rows = await snapshotRows(connection);
  return rows.map(({ record }) => record['id']);
}

describe('preflight/select_privilege', () => {
  it('names tables without SELECT and schemas without USAGE, and the SQL that mends it (K11)', async () => {
    const subject = await reader(
      `create schema "S 1"; create table a(id int primary key); create table "B b"(id int primary key); create table "S 1".c(id int primary key);
       create table "S 1".d(id int primary key); create publication p for all tables; grant select on a, "S 1".d to ROLE;
       insert into a values (1); insert into "S 1".c values (3)`,
    );
    const halt = await obstacle(subject.connection);
    expect(halt?.code).toBe('preflight/select_privilege');
    expect(halt?.detail).toBe(
      `the role ${subject.role} may not read "S 1".c, "S 1".d, public."B b";` +
        ` run: GRANT USAGE ON SCHEMA "S 1" TO ${subject.role}; GRANT SELECT ON "S 1".c, public."B b" TO ${subject.role}`,
    );
    await mend(subject);
    expect(await obstacle(subject.connection)).toBeNull();
    expect(await ids(subject.connection)).toEqual([3, 1]);
  });

  it('names ten tables of many', async () => {
    const subject = await reader(
      `do $$ begin for i in 101..113 loop execute format('create table t%s(id int primary key)', i); end loop; end $$;
       create publication p for all tables`,
    );
    const halt = await obstacle(subject.connection);
    expect(halt?.detail).toMatch(/public\.t110 and 3 more; run: /);
    expect(halt?.detail).not.toContain('t111');
    await mend(subject);
    expect((await obstacle(subject.connection))?.detail).toContain(
      'may not read public.t111, public.t112, public.t113; run:',
    );
    await mend(subject);
    expect(await obstacle(subject.connection)).toBeNull();
  });

  it('wants a privilege on the table, which its columns alone do not give', async () => {
    const subject = await reader(
      `create table t(id int primary key, a int); create publication p for table t (id);
       insert into t values (1, 2); grant select (id, a) on t to ROLE`,
    );
    expect((await obstacle(subject.connection))?.code).toBe(
      'preflight/select_privilege',
    );
    await mend(subject);
    expect(await obstacle(subject.connection)).toBeNull();
    expect(await ids(subject.connection)).toEqual([1]);
  });

  it('wants privileges on the root of a partitioned table alone', async () => {
    const subject = await reader(
      `create table root(id int primary key) partition by list (id); create schema s; create table s.leaf partition of root for values in (1);
       create publication p for table root with (publish_via_partition_root = true); insert into root values (1)`,
    );
    expect((await obstacle(subject.connection))?.detail).toContain(
      'may not read public.root; run: GRANT SELECT ON public.root TO',
    );
    await mend(subject);
    expect(await obstacle(subject.connection)).toBeNull();
    expect(await ids(subject.connection)).toEqual([1]);
  });

  it('takes what the role has as a member of another, and of everybody', async () => {
    const subject = await reader(
      `create table t(id int primary key); create table u(id int primary key); create table v();
       create publication p for all tables; grant pg_read_all_data to ROLE`,
    );
    expect(await obstacle(subject.connection)).toBeNull();
    await subject.source.query(
      `revoke pg_read_all_data from ${subject.role}; grant select on t to public`,
    );
    expect((await obstacle(subject.connection))?.detail).toContain(
      'may not read public.u, public.v; run:',
    );
    expect(await obstacle(subject.source.connection)).toBeNull();
  });
});

describe('preflight/row_security', () => {
  const SECURED = `create table t(id int primary key, owner text); alter table t enable row level security;
    create policy own on t using (owner = current_user); grant select on t to ROLE;
    create publication p for table t; insert into t values (1, 'x'), (2, 'y')`;

  it('halts where policies would hide rows, with the SQL that mends it (K10)', async () => {
    const subject = await reader(SECURED);
    const halt = await obstacle(subject.connection);
    expect(halt?.code).toBe('preflight/row_security');
    expect(halt?.detail).toBe(
      `row security applies to the role ${subject.role} on public.t; run: ALTER ROLE ${subject.role} BYPASSRLS`,
    );
    // The server refuses by itself, whatever has changed since.
    await expect(ids(subject.connection)).rejects.toMatchObject({
      code: '42501',
    });
    await mend(subject);
    expect(await obstacle(subject.connection)).toBeNull();
    expect(await ids(subject.connection)).toEqual([1, 2]);
  });

  it('concerns the owner where it is forced, and no superuser', async () => {
    const subject = await reader(`${SECURED}; alter table t owner to ROLE`);
    expect(await obstacle(subject.connection)).toBeNull();
    expect(await ids(subject.connection)).toEqual([1, 2]);
    await subject.source.query('alter table t force row level security');
    expect((await obstacle(subject.connection))?.code).toBe(
      'preflight/row_security',
    );
    expect(await obstacle(subject.source.connection)).toBeNull();
  });

  it('concerns the root of a partitioned table and not what is in it', async () => {
    const subject = await reader(
      `create table root(id int primary key) partition by list (id); create table leaf partition of root for values in (1);
       alter table leaf enable row level security; grant select on root, leaf to ROLE;
       create publication p for table root with (publish_via_partition_root = true); insert into root values (1)`,
    );
    expect(await obstacle(subject.connection)).toBeNull();
    expect(await ids(subject.connection)).toEqual([1]);
    await subject.source.query('alter table root enable row level security');
    expect((await obstacle(subject.connection))?.detail).toContain(
      'public.root',
    );
  });
});
