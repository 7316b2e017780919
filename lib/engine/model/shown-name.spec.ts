import { expect, it } from 'vitest';
import { shownName } from './shown-name.js';

it.each([
  ['orders', 'orders'],
  ['a\u0000b\nc\u001b[31md\u202ee\u2028f', 'abc[31mdef'],
  ['Größe 😀', 'Größe 😀'],
  ['\ud800x', 'x'],
  ['😀'.repeat(200), '😀'.repeat(100)],
  ['', ''],
])('shows the name %j as %j', (name, shown) => {
  expect(shownName(name)).toBe(shown);
});
