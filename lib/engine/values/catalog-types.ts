/** What the catalog says about one type. Every field is text, whatever parsers the session that asks has. */
export interface CatalogType {
  readonly oid: string;
  readonly kind: 'array' | 'domain' | 'other';
  /** OID of an array's element type or of the type under a domain; `0` for all other types. */
  readonly inner: string;
  /** What separates the elements of an array; of no meaning for other types. */
  readonly delimiter: string;
}

/**
 * Asks what the types with the OIDs in `$1` (text, such as `{16385,16390}`) are made of: one {@link CatalogType} each
 * for them, for the types under domains, and for the element types of arrays. Types that are gone have no row.
 *
 * A type is an array when its element type names it as such: `int2vector` and `point` have elements and are printed in
 * ways of their own.
 *
 * @see {@link https://www.postgresql.org/docs/current/catalog-pg-type.html | pg_type}
 */
export const CATALOG_TYPES_QUERY = `
WITH RECURSIVE needed (oid) AS (
  SELECT pg_catalog.unnest(CAST(CAST($1 AS pg_catalog.text) AS pg_catalog.oid[]))
  UNION
  SELECT coalesce(element.oid, type.typbasetype)
    FROM needed
    JOIN pg_catalog.pg_type AS type ON type.oid = needed.oid
    LEFT JOIN pg_catalog.pg_type AS element
      ON element.oid = type.typelem AND element.typarray = type.oid
)
SELECT CAST(type.oid AS pg_catalog.text) AS oid,
       CASE WHEN element.oid IS NOT NULL THEN 'array'
            WHEN type.typtype = 'd' THEN 'domain'
            ELSE 'other' END AS kind,
       CAST(coalesce(element.oid, type.typbasetype) AS pg_catalog.text) AS "inner",
       CAST(coalesce(element.typdelim, type.typdelim) AS pg_catalog.text) AS delimiter
  FROM needed
  JOIN pg_catalog.pg_type AS type ON type.oid = needed.oid
  LEFT JOIN pg_catalog.pg_type AS element
    ON element.oid = type.typelem AND element.typarray = type.oid`;
