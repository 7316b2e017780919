const PRINTABLE_NAME = /^[A-Za-z_$][\w$]{0,60}$/;
const SQLSTATE = /^(?=.*\d)[0-9A-Z]{5}$/;

/**
 * The class of whatever was thrown and its SQLSTATE, if it has one: all that may be said of an error of others, since its
 * message may quote a row or a secret.
 */
export function errorClass(error: unknown): string {
  try {
    return classOf(error);
  } catch {
    // Whatever was thrown may throw when it is looked at, and a failure must not turn into another one for that.
    return 'Error';
  }
}

function classOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const className = error.constructor.name;
  const name = PRINTABLE_NAME.test(className) ? className : 'Error';
  const code: unknown = 'code' in error ? error.code : undefined;
  return typeof code === 'string' && SQLSTATE.test(code)
    ? `${name} (SQLSTATE ${code})`
    : name;
}
