import { describe, expect, it } from 'vitest';
import { isSynchronousStandby } from './synchronous-standbys.js';

describe('synchronous_standby_names', () => {
  it.each([
    ['*', 'anybody'],
    ['"*"', 'anybody'],
    ['s1', 's1'],
    ['s1, s2', 's2'],
    ['S1', 's1'],
    ['s1', 'S1'],
    ['FIRST 2 (s1, s2, s3)', 's3'],
    ['any 1(s1,s2)', 's1'],
    ['2 (s1, *)', 'anybody'],
    ['ANY 1 ("nestjs-replicant orders")', 'nestjs-replicant orders'],
    ['"nestjs-replicant ORDERS"', 'nestjs-replicant orders'],
    ['a,"say ""hi"", (x)"', 'say "hi", (x)'],
    ['first, any', 'any'],
    ['FIRST 1 (first)', 'first'],
    ['1, 2', '2'],
    ['größe', 'größe'],
  ])('%s names %s', (setting, name) => {
    expect(isSynchronousStandby(setting, name)).toBe(true);
  });

  it.each([
    ['', 's1'],
    ['  ', ''],
    ['s1, s2', 's3'],
    ['s1', 's'],
    ['FIRST 1 (s1)', 'FIRST'],
    ['ANY 3 (s1)', '3'],
    ['nestjs', 'nestjs-replicant orders'],
    ['"nestjs-replicant orders"', 'nestjs-replicant audit'],
    ['"a, b"', 'b'],
    ['"a*", b', 'anybody'],
  ])('%s does not name %s', (setting, name) => {
    expect(isSynchronousStandby(setting, name)).toBe(false);
  });
});
