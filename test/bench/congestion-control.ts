import { readFileSync, writeFileSync } from 'node:fs';

const FOLDER = '/proc/sys/net/ipv4';
const SETTING = `${FOLDER}/tcp_congestion_control`;
const AVAILABLE = `${FOLDER}/tcp_available_congestion_control`;

/** The algorithms to compare; the first is the one that loads without a suffix run under. */
const COMPARED = ['bbr', 'cubic'] as const;

/**
 * The algorithm that the kernel gives to new TCP connections.
 *
 * @see {@link https://man7.org/linux/man-pages/man7/tcp.7.html | tcp(7)}
 */
export class CongestionControl {
  readonly #before = read(SETTING);

  /** Name of the algorithm in force; `null` where it cannot be told. */
  get current(): string | null {
    return read(SETTING);
  }

  /**
   * The algorithms to run under: those compared when this process may choose and the kernel has them, otherwise the one in
   * force.
   */
  get choices(): readonly (string | null)[] {
    const available = (read(AVAILABLE) ?? '').split(' ');
    const choices = COMPARED.filter((name) => available.includes(name));
    return choices.length > 0 && this.#maySet() ? choices : [this.#before];
  }

  /** Makes it the one in force. `null` leaves it as it is. */
  use(name: string | null): void {
    if (name !== null && name !== this.current) writeFileSync(SETTING, name);
  }

  /** Puts back what was in force at first. */
  restore(): void {
    this.use(this.#before);
  }

  #maySet(): boolean {
    if (this.#before === null || process.getuid?.() !== 0) return false;
    try {
      writeFileSync(SETTING, this.#before);
      return true;
    } catch {
      // A container's root may not write it.
      return false;
    }
  }
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'latin1').trim();
  } catch {
    return null;
  }
}
