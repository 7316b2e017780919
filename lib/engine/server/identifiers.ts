import { isName } from '../model/names.js';
import { ReplicantConfigError } from '../options/config-error.js';

const BARE = /^[a-z_][a-z0-9_]{0,62}$/;

/**
 * Writes a name into SQL: bare when it needs no quotes, quoted otherwise.
 * The only place where names enter SQL or a replication command.
 *
 * @throws {ReplicantConfigError} when PostgreSQL would refuse or cut the name
 */
export function quoteIdentifier(name: string, option = 'name'): string {
  if (!isName(name)) {
    throw new ReplicantConfigError(
      option,
      'must be a name of 1 to 63 bytes without a NUL byte.',
    );
  }
  return BARE.test(name) ? name : alwaysQuoted(name);
}

/** The list of names that the option `publication_names` of pgoutput takes, as a string literal. */
export function publicationNamesLiteral(names: readonly string[]): string {
  return quoteLiteral(
    names
      .map((name) => (BARE.test(name) ? name : alwaysQuoted(name)))
      .join(','),
  );
}

/** A string literal for a replication command, which takes no parameters and knows no backslash escapes. */
export function quoteLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function alwaysQuoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
