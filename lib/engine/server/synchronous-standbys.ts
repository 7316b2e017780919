/** A quoted name, a mark, or a bare name or number. */
const TOKEN = /"((?:[^"]|"")*)"|[(),]|[^\s"(),]+/g;

/**
 * Whether a session of this name is one that `synchronous_standby_names` lets commits wait for.
 *
 * @param setting - a list of names, `FIRST n (…)`, `ANY n (…)` or `n (…)`; names compare without regard to case, and
 * `*` is everybody
 * @see {@link https://www.postgresql.org/docs/current/runtime-config-replication.html#GUC-SYNCHRONOUS-STANDBY-NAMES | synchronous_standby_names}
 */
export function isSynchronousStandby(
  setting: string,
  applicationName: string,
): boolean {
  const own = asciiLowerCase(applicationName);
  return standbyNames(setting).some(
    (name) => name === '*' || asciiLowerCase(name) === own,
  );
}

function standbyNames(setting: string): string[] {
  const tokens = [...setting.matchAll(TOKEN)];
  // Method and number stand before the list in parentheses.
  const opening = tokens.findIndex(([text]) => text === '(');
  return tokens
    .slice(opening + 1)
    .filter(([text]) => !/^[(),]$/.test(text))
    .map(([text, quoted]) => quoted?.replaceAll('""', '"') ?? text);
}

/** As the server folds names, whatever the language of this process. */
function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
