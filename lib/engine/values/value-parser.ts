/**
 * Turns the text in which the server prints a value into what a sink receives. It is picked once per column and
 * called once per value. SQL NULL never reaches it.
 */
export type ValueParser = (text: string) => unknown;

/** Delivers the server's text as it is. */
export function asText(text: string): string {
  return text;
}
