import { Deck, Random } from '../support/random.js';

/** All kinds of faults. Six rounds in a row meet every family. */
export const FAMILIES = {
  /** The process of the application: killed, or asked to end, and started again. */
  application: [
    'kill',
    'kill-connecting',
    'kill-after-large',
    'sigterm',
    'sigterm-twice',
    'close',
    'close-connecting',
  ],
  /** The server of the source. */
  server: ['server-kill', 'server-immediate', 'server-fast'],
  /** `pg_terminate_backend` of all that the application has open, at a certain moment. */
  backends: [
    'login',
    'chain',
    'slot-read',
    'start',
    'types',
    'transaction',
    'sink',
    'idle',
    'stop',
  ],
  /** The network passes nothing, and says nothing. */
  silence: ['cut', 'half-open-to-server', 'half-open-to-client'],
  /** The network is bad. */
  slowness: ['delay', 'throttle'],
  /** Fifty in a row, 50 ms apart. */
  flaps: ['flapping-network', 'flapping-backends'],
} as const satisfies Record<string, readonly [string, ...string[]]>;

export type Family = keyof typeof FAMILIES;
export type Kind = (typeof FAMILIES)[Family][number];

/** One fault. What the shares mean depends on its kind. */
export interface Fault {
  readonly family: Family;
  readonly kind: Kind;
  /** From 0 to below 1: how late it begins. */
  readonly delay: number;
  /** From 0 to below 1: how long or how strong it is. */
  readonly size: number;
}

/** Faults that follow each other at once. */
export type Round = readonly Fault[];

/** Every so many rounds a second fault hits what recovers from the first. */
const DOUBLE_EVERY = 3;
const FAMILY_NAMES = [
  'application',
  'server',
  'backends',
  'silence',
  'slowness',
  'flaps',
] as const satisfies readonly Family[];

/** The faults of a run, which depend on the seed alone. */
export function planRounds(seed: number, rounds: number): Round[] {
  const random = new Random(seed);
  const kinds: Record<Family, Deck<Kind>> = {
    application: new Deck<Kind>(FAMILIES.application, random),
    server: new Deck<Kind>(FAMILIES.server, random),
    backends: new Deck<Kind>(FAMILIES.backends, random),
    silence: new Deck<Kind>(FAMILIES.silence, random),
    slowness: new Deck<Kind>(FAMILIES.slowness, random),
    flaps: new Deck<Kind>(FAMILIES.flaps, random),
  };
  const families = new Deck<Family>(FAMILY_NAMES, random);
  const seconds = new Deck<Family>(FAMILY_NAMES, random);
  const fault = (family: Family): Fault => ({
    family,
    kind: kinds[family].deal(),
    delay: random.next(),
    size: random.next(),
  });
  return Array.from({ length: rounds }, (_, index) => {
    const first = fault(families.deal());
    return index % DOUBLE_EVERY === DOUBLE_EVERY - 1
      ? [first, fault(seconds.deal())]
      : [first];
  });
}
