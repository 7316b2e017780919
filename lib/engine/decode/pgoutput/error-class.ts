/** The class of whatever was thrown: its message may hold a value. */
export function errorClass(error: unknown): string {
  return error instanceof Error ? error.constructor.name : typeof error;
}
