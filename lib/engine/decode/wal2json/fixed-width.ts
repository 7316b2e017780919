/**
 * OIDs of the built-in types whose values all have the same length (`typlen` above zero). The server never stores such a value apart from its row,
 * so the plugin leaves none out as unchanged.
 *
 * @see {@link https://www.postgresql.org/docs/current/storage-toast.html | TOAST}
 */
const FIXED_WIDTH: ReadonlySet<number> = new Set([
  16, 18, 19, 20, 21, 23, 24, 26, 27, 28, 29, 600, 601, 603, 628, 700, 701, 718,
  774, 790, 829, 1033, 1082, 1083, 1114, 1184, 1186, 1266, 2202, 2203, 2204,
  2205, 2206, 2950, 3220, 3734, 3769, 4089, 4096, 4191, 5069,
]);

export function isFixedWidth(typeOid: number): boolean {
  return FIXED_WIDTH.has(typeOid);
}
