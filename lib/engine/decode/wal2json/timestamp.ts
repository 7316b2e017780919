const TIMESTAMP =
  /^(\d{4,6})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?( BC)?$/;

/**
 * Reads a time as PostgreSQL prints a `timestamptz` in ISO style, such as `2026-01-02 03:04:05.123456+00`.
 *
 * @returns microseconds since 1970-01-01 UTC, or `null` for what is no such time
 */
export function parseTimestamp(text: string): bigint | null {
  const match = TIMESTAMP.exec(text);
  if (match === null) return null;
  const part = (index: number): number => Number(match[index] ?? 0);
  const [month, day] = [part(2) - 1, part(3)];
  const midnight = new Date(0);
  // Date.UTC would take the year 99 for 1999. The year before 1 is 1 BC.
  midnight.setUTCFullYear(
    match[12] === undefined ? part(1) : 1 - part(1),
    month,
    day,
  );
  if (midnight.getUTCMonth() !== month || midnight.getUTCDate() !== day)
    return null;
  const clock = part(4) * 3600 + part(5) * 60 + part(6);
  const offset = part(9) * 3600 + part(10) * 60 + part(11);
  const seconds =
    midnight.getTime() / 1000 + clock + (match[8] === '-' ? offset : -offset);
  return BigInt(seconds) * 1_000_000n + BigInt((match[7] ?? '').padEnd(6, '0'));
}
