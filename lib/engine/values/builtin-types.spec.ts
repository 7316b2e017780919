import { describe, expect, it } from 'vitest';
import { builtinType, builtinTypeNamed } from './builtin-types.js';

describe('builtinType', () => {
  it.each([
    [23, 'int4', null, ','],
    [1007, '_int4', 23, ','],
    [603, 'box', null, ';'],
    [1020, '_box', 603, ';'],
    [1017, '_point', 600, ','],
    [22, 'int2vector', null, ','],
    [1006, '_int2vector', 22, ','],
    [4451, 'int4multirange', null, ','],
    [6150, '_int4multirange', 4451, ','],
    [199, '_json', 114, ','],
    [3807, '_jsonb', 3802, ','],
    [271, '_xid8', 5069, ','],
    [194, 'pg_node_tree', null, ','],
    [273, '_pg_class', 83, ','],
  ])('%i is %s', (oid, name, element, delimiter) => {
    const type = { oid, name, element, delimiter };
    expect(builtinType(oid)).toEqual(type);
    expect(builtinTypeNamed(name)).toEqual(type);
  });

  it.each([0, 1, 705, 2249, 2287, 16384])(
    'knows no type %i that a column could have',
    (oid) => {
      expect(builtinType(oid)).toBeUndefined();
    },
  );

  it.each(['', 'citext', '__int4', 'constructor', '__proto__'])(
    'knows no type that is named %j',
    (name) => {
      expect(builtinTypeNamed(name)).toBeUndefined();
    },
  );
});
