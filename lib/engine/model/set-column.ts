import type { Row } from './change.js';

/** Any name is plain data; only `__proto__` would not be when assigned. */
export function setColumn(record: Row, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(record, name, {
      value,
      configurable: true,
      enumerable: true,
      writable: true,
    });
  } else {
    record[name] = value;
  }
}
