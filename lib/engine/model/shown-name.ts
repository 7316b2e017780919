const LONGEST_SHOWN = 100;

/** A name that others have chosen, such as an application_name, made fit for a log line: printable, and not too long. */
export function shownName(name: string): string {
  const printable = name.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '');
  return Array.from(printable).slice(0, LONGEST_SHOWN).join('');
}
