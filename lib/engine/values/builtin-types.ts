/** A type that every PostgreSQL server has under the same OID. */
export interface BuiltinType {
  readonly oid: number;
  readonly name: string;
  /** OID of the element type; `null` for a type that is no array. */
  readonly element: number | null;
  /** What separates the elements of an array of this type, or of this array's own type. */
  readonly delimiter: string;
}

/**
 * OID, name and, where there is one, OID of the array type: the types of `pg_catalog` that a column can have, as
 * PostgreSQL 15 to 18 know them. An array type is named like its element type with `_` in front.
 * OIDs below 10000 are fixed for ever, and the server sends no Type message for them.
 *
 * @see {@link https://www.postgresql.org/docs/current/catalog-pg-type.html | pg_type}
 */
const TYPES: readonly (readonly [oid: number, name: string, array?: number])[] =
  [
    [16, 'bool', 1000],
    [17, 'bytea', 1001],
    [18, 'char', 1002],
    [19, 'name', 1003],
    [20, 'int8', 1016],
    [21, 'int2', 1005],
    [22, 'int2vector', 1006],
    [23, 'int4', 1007],
    [24, 'regproc', 1008],
    [25, 'text', 1009],
    [26, 'oid', 1028],
    [27, 'tid', 1010],
    [28, 'xid', 1011],
    [29, 'cid', 1012],
    [30, 'oidvector', 1013],
    [71, 'pg_type', 210],
    [75, 'pg_attribute', 270],
    [81, 'pg_proc', 272],
    [83, 'pg_class', 273],
    [114, 'json', 199],
    [142, 'xml', 143],
    [194, 'pg_node_tree'],
    [600, 'point', 1017],
    [601, 'lseg', 1018],
    [602, 'path', 1019],
    [603, 'box', 1020],
    [604, 'polygon', 1027],
    [628, 'line', 629],
    [650, 'cidr', 651],
    [700, 'float4', 1021],
    [701, 'float8', 1022],
    [718, 'circle', 719],
    [774, 'macaddr8', 775],
    [790, 'money', 791],
    [829, 'macaddr', 1040],
    [869, 'inet', 1041],
    [1033, 'aclitem', 1034],
    [1042, 'bpchar', 1014],
    [1043, 'varchar', 1015],
    [1082, 'date', 1182],
    [1083, 'time', 1183],
    [1114, 'timestamp', 1115],
    [1184, 'timestamptz', 1185],
    [1186, 'interval', 1187],
    [1248, 'pg_database'],
    [1266, 'timetz', 1270],
    [1560, 'bit', 1561],
    [1562, 'varbit', 1563],
    [1700, 'numeric', 1231],
    [1790, 'refcursor', 2201],
    [2202, 'regprocedure', 2207],
    [2203, 'regoper', 2208],
    [2204, 'regoperator', 2209],
    [2205, 'regclass', 2210],
    [2206, 'regtype', 2211],
    [2842, 'pg_authid'],
    [2843, 'pg_auth_members'],
    [2950, 'uuid', 2951],
    [2970, 'txid_snapshot', 2949],
    [3220, 'pg_lsn', 3221],
    [3361, 'pg_ndistinct'],
    [3402, 'pg_dependencies'],
    [3614, 'tsvector', 3643],
    [3615, 'tsquery', 3645],
    [3642, 'gtsvector', 3644],
    [3734, 'regconfig', 3735],
    [3769, 'regdictionary', 3770],
    [3802, 'jsonb', 3807],
    [3904, 'int4range', 3905],
    [3906, 'numrange', 3907],
    [3908, 'tsrange', 3909],
    [3910, 'tstzrange', 3911],
    [3912, 'daterange', 3913],
    [3926, 'int8range', 3927],
    [4066, 'pg_shseclabel'],
    [4072, 'jsonpath', 4073],
    [4089, 'regnamespace', 4090],
    [4096, 'regrole', 4097],
    [4191, 'regcollation', 4192],
    [4451, 'int4multirange', 6150],
    [4532, 'nummultirange', 6151],
    [4533, 'tsmultirange', 6152],
    [4534, 'tstzmultirange', 6153],
    [4535, 'datemultirange', 6155],
    [4536, 'int8multirange', 6157],
    [4600, 'pg_brin_bloom_summary'],
    [4601, 'pg_brin_minmax_multi_summary'],
    [5017, 'pg_mcv_list'],
    [5038, 'pg_snapshot', 5039],
    [5069, 'xid8', 271],
    [6101, 'pg_subscription'],
  ];

/** `box` alone has a delimiter of its own, because a box is printed with commas in it. */
const BOX_OID = 603;

function describe(): BuiltinType[] {
  const types: BuiltinType[] = [];
  for (const [oid, name, array] of TYPES) {
    const delimiter = oid === BOX_OID ? ';' : ',';
    types.push({ oid, name, element: null, delimiter });
    if (array !== undefined)
      types.push({ oid: array, name: `_${name}`, element: oid, delimiter });
  }
  return types;
}

const BUILTIN_TYPES = describe();
const BY_OID: ReadonlyMap<number, BuiltinType> = new Map(
  BUILTIN_TYPES.map((type) => [type.oid, type]),
);
const BY_NAME: ReadonlyMap<string, BuiltinType> = new Map(
  BUILTIN_TYPES.map((type) => [type.name, type]),
);

/** The built-in type with this OID, if there is one. */
export function builtinType(oid: number): BuiltinType | undefined {
  return BY_OID.get(oid);
}

/** The built-in type that `pg_catalog` holds under this name, if there is one. */
export function builtinTypeNamed(name: string): BuiltinType | undefined {
  return BY_NAME.get(name);
}
