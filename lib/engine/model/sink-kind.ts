/**
 * What a sink is.
 *
 * - `mirror`: a copy that may be confirmed past its own checkpoint while nothing concerns it, so that WAL is released
 * - `appendLog`: a record of everything; never confirmed past its own checkpoint, and asked about the position of the slot
 */
export type SinkKind = 'mirror' | 'appendLog';
