import { describe, expect, it } from 'vitest';
import { currentLsn, readSlot } from './support/logical-slot.js';
import { Mirrored, NO_FAULTS } from './support/mirrored.js';
import { countApplied } from './support/compare-tables.js';
import { useServer } from './support/suite.js';

const suite = useServer({ settings: { wal_sender_timeout: '2s' } });
const TABLE = 'create table t(id int primary key, v text)';

describe('an application that is killed', () => {
  it('between the commit of its sink and the acknowledgement goes on without halt, and applies nothing twice (A07)', async () => {
    const mirrored = await Mirrored.create(suite, TABLE);
    const first = await mirrored.started({ HOLD: 'committed' });
    const before = await currentLsn(mirrored.source);
    await mirrored.source.query("insert into t values (1, 'a'), (2, 'b')");
    await mirrored.source.query("update t set v = 'c' where id = 1");
    await first.says('committed');
    await first.kill();
    // The server was not told, so it will send what the sink has committed already.
    const slot = await readSlot(suite.server, mirrored.slotName);
    expect(slot?.confirmedFlushLsn).toBeLessThanOrEqual(before);
    expect(await countApplied(mirrored.target)).toEqual({
      applied: 1,
      appliedTwice: 0,
    });

    const second = await mirrored.started();
    await mirrored.source.query('delete from t where id = 2');
    await mirrored.caughtUp();
    expect(await mirrored.faults()).toEqual(NO_FAULTS);
    expect((await countApplied(mirrored.target)).applied).toBe(3);
    expect(second.said).not.toContain('halted');
  });

  it('in the middle of the transaction of its sink repeats it whole', async () => {
    const mirrored = await Mirrored.create(suite, TABLE);
    const first = await mirrored.started({ HOLD: 'written' });
    await mirrored.source.query("insert into t values (1, 'a'), (2, 'b')");
    await first.says('written');
    await first.kill();
    expect((await countApplied(mirrored.target)).applied).toBe(0);

    await mirrored.started();
    await mirrored.caughtUp();
    expect(await mirrored.faults()).toEqual(NO_FAULTS);
    expect((await countApplied(mirrored.target)).applied).toBe(1);
  });

  it('while idle, after it has released WAL that concerns it not, goes on without halt', async () => {
    const mirrored = await Mirrored.create(suite, TABLE);
    const first = await mirrored.started();
    await mirrored.source.query("insert into t values (1, 'a')");
    await mirrored.caughtUp();
    // WAL of which this pipeline is sent nothing is confirmed nevertheless.
    await mirrored.target.query(
      'create table noise as select generate_series(1, 10000)',
    );
    await mirrored.caughtUp();
    await first.kill();
    const [stored] = await mirrored.target.query<{ ahead: boolean }>(
      'select confirmed_lsn > commit_lsn as ahead from replicant_checkpoints',
    );
    expect(stored).toEqual({ ahead: true });

    const second = await mirrored.started();
    await mirrored.source.query("insert into t values (2, 'b')");
    await mirrored.caughtUp();
    expect(await mirrored.faults()).toEqual(NO_FAULTS);
    expect((await countApplied(mirrored.target)).applied).toBe(2);
    expect(second.said).not.toContain('halted');
  });
});
