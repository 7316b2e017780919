import { describe, expect, it } from 'vitest';
import { countApplied } from './support/compare-tables.js';
import { currentLsn, readSlot } from './support/logical-slot.js';
import { Mirrored, NO_FAULTS } from './support/mirrored.js';
import { useServer } from './support/suite.js';

const suite = useServer({ settings: { wal_sender_timeout: '2s' } });
const TABLE = 'create table t(id int primary key, v text)';

describe('SIGTERM', () => {
  // A pool that ends waits for connections that are in use, but gives out no new ones.
  it.each(['received', 'written'])(
    'while a transaction is %s lets it finish whole, before another module closes the pool, and nothing is redelivered (F02)',
    async (place) => {
      const mirrored = await Mirrored.create(suite, TABLE);
      const first = await mirrored.started({ HOLD: place, HOLD_MS: '1000' });
      await mirrored.source.query("insert into t values (1, 'a'), (2, 'b')");
      const inserted = await currentLsn(mirrored.source);
      await first.says(place);
      first.signal('SIGTERM');
      expect(await first.ended()).toEqual({ code: null, signal: 'SIGTERM' });
      expect(first.said).toContain('committed');
      expect(first.output).toBe('');

      const slot = await readSlot(suite.server, mirrored.slotName);
      expect(slot?.active).toBe(false);
      expect(slot?.confirmedFlushLsn).toBeGreaterThanOrEqual(inserted);
      expect(await mirrored.faults()).toEqual(NO_FAULTS);

      const second = await mirrored.started();
      await mirrored.source.query('delete from t where id = 2');
      await mirrored.caughtUp();
      expect(await mirrored.faults()).toEqual(NO_FAULTS);
      expect(second.said.filter((word) => word === 'written')).toHaveLength(1);
    },
  );

  it('twice ends like once', async () => {
    const mirrored = await Mirrored.create(suite, TABLE);
    const application = await mirrored.started({
      HOLD: 'written',
      HOLD_MS: '500',
    });
    await mirrored.source.query("insert into t values (1, 'a')");
    await application.says('written');
    application.signal('SIGTERM');
    application.signal('SIGTERM');
    await application.ended();
    expect((await readSlot(suite.server, mirrored.slotName))?.active).toBe(
      false,
    );
    // Whatever became of the transaction, it did so whole.
    await mirrored.started();
    await mirrored.caughtUp();
    expect(await mirrored.faults()).toEqual(NO_FAULTS);
  });

  it('without shutdown hooks repeats the running transaction at worst, and loses nothing (F03)', async () => {
    const mirrored = await Mirrored.create(suite, TABLE);
    const first = await mirrored.started({
      SHUTDOWN_HOOKS: 'off',
      HOLD: 'written',
    });
    await mirrored.source.query("insert into t values (1, 'a'), (2, 'b')");
    await first.says('written');
    first.signal('SIGTERM');
    expect(await first.ended()).toEqual({ code: null, signal: 'SIGTERM' });
    expect((await countApplied(mirrored.target)).applied).toBe(0);

    await mirrored.started();
    await mirrored.caughtUp();
    expect(await mirrored.faults()).toEqual(NO_FAULTS);
    expect((await countApplied(mirrored.target)).applied).toBe(1);
  });
});

describe('an application without shutdown hooks', () => {
  it('is told so once it streams (F03)', async () => {
    const mirrored = await Mirrored.create(suite, TABLE);
    const application = await mirrored.started({ SHUTDOWN_HOOKS: 'off' });
    await application.writes('app.enableShutdownHooks()');
  });
});

describe('app.close()', () => {
  it('leaves nothing that keeps the process alive (F07)', async () => {
    const mirrored = await Mirrored.create(suite, TABLE);
    const application = await mirrored.started();
    await mirrored.source.query("insert into t values (1, 'a')");
    await application.says('committed');
    application.close();
    await application.says('closed');
    expect(await application.ended({ timeout: 1_000 })).toEqual({
      code: 0,
      signal: null,
    });
    expect((await readSlot(suite.server, mirrored.slotName))?.active).toBe(
      false,
    );
    expect(application.output).toBe('');
  });
});
