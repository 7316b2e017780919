import { expect, it } from 'vitest';
import { CopiedRows } from '../copy-text.js';
import { PickedRows } from './picked-rows.js';

it('has the rows at certain places', () => {
  const rows = new PickedRows(new CopiedRows(['a', 'b', 'c', 'd']), [1, 3]);
  expect(rows.length).toBe(2);
  expect([...rows]).toEqual([['b'], ['d']]);
  expect(rows.at(0)).toEqual(['b']);
  expect(rows.at(-1)).toEqual(['d']);
  expect(rows.at(2)).toBeUndefined();
});
