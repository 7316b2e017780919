import { describe, expect, it } from 'vitest';
import { HaltError } from '../model/halt.js';
import type { CommandSession, TextRow } from './session.js';
import {
  findDivergence,
  parseTimelineHistory,
  requireCommonHistory,
} from './timeline.js';

describe('a timeline history', () => {
  it('is read as the server writes it', () => {
    const content =
      '1\t0/3000148\tno recovery target specified\n\n' +
      '# a comment\n2\t1/A\tbefore 2026-01-01 00:00:00+00\n';
    expect(parseTimelineHistory(content)).toEqual([
      { timeline: 1, leftAt: 0x3000148n },
      { timeline: 2, leftAt: 0x1_0000_000an },
    ]);
  });

  it.each(['1', 'one\t0/1\tx', '1\t0/XYZ\tx', '1\t0\tx', '<html>'])(
    'is none when a line is %j',
    (line) => {
      expect(parseTimelineHistory(`1\t0/1\tx\n${line}\n`)).toBeNull();
    },
  );
});

describe('a stored position', () => {
  const history = [
    { timeline: 1, leftAt: 100n },
    { timeline: 3, leftAt: 200n },
  ];

  it.each([
    [1, 99n, null],
    [1, 100n, null],
    [3, 200n, null],
    [1, 101n, 'which the server left at 0/64'],
    [3, 201n, 'which the server left at 0/C8'],
    [2, 50n, 'timeline 4 does not descend from'],
    [5, 50n, 'timeline 4 does not descend from'],
  ])('of timeline %i at %s', (timeline, lsn, why) => {
    const found = findDivergence({ timeline, lsn }, 4, history);
    if (why === null) expect(found).toBeNull();
    else expect(found).toContain(why);
  });

  it('is not taken for part of a history that cannot be read', () => {
    expect(findDivergence({ timeline: 1, lsn: 1n }, 4, null)).toContain(
      'cannot be read',
    );
  });
});

describe('requireCommonHistory', () => {
  function server(content: string | null): {
    readonly session: CommandSession;
    readonly asked: string[];
  } {
    const asked: string[] = [];
    const query = async (text: string): Promise<readonly TextRow[]> => {
      asked.push(text);
      return [{ filename: '00000002.history', content }];
    };
    return { session: { query, queryPatiently: query }, asked };
  }

  const identity = (timeline: number) => ({
    systemIdentifier: '7',
    timeline,
    flushedLsn: 1000n,
    database: 'shop',
  });

  it.each([
    [{ commitLsn: 10n, confirmedLsn: null }, 2],
    [{ commitLsn: null, confirmedLsn: null, timeline: 1 }, 2],
    [{ commitLsn: 10n, confirmedLsn: 20n, timeline: 2 }, 2],
  ])(
    'asks nothing when there is nothing to compare: %o',
    async (position, timeline) => {
      const { session, asked } = server(null);
      await requireCommonHistory(session, position, identity(timeline));
      expect(asked).toEqual([]);
    },
  );

  it('compares the furthest position', async () => {
    const { session, asked } = server('1\t0/64\tx\n');
    const at = (commitLsn: bigint, confirmedLsn: bigint) =>
      requireCommonHistory(
        session,
        { commitLsn, confirmedLsn, timeline: 1 },
        identity(2),
      );
    await at(90n, 100n);
    await at(100n, 90n);
    expect(asked).toEqual(['TIMELINE_HISTORY 2', 'TIMELINE_HISTORY 2']);
    await expect(at(90n, 101n)).rejects.toThrow('data_gap/timeline_diverged');
    await expect(at(101n, 90n)).rejects.toThrow('data_gap/timeline_diverged');
  });

  it('halts on a server that is on an older timeline', async () => {
    const { session } = server('1\t0/64\tx\n');
    const position = { commitLsn: 10n, confirmedLsn: 20n, timeline: 3 };
    const halted = requireCommonHistory(session, position, identity(2));
    await expect(halted).rejects.toThrow(HaltError);
    await expect(halted).rejects.toThrow('data_gap/timeline_diverged');
  });

  it.each([null, 'nonsense'])(
    'halts when the history is %j',
    async (content) => {
      const { session } = server(content);
      const position = { commitLsn: 10n, confirmedLsn: 20n, timeline: 1 };
      await expect(
        requireCommonHistory(session, position, identity(2)),
      ).rejects.toThrow('data_gap/timeline_diverged');
    },
  );
});
