/** What is known of a slot whose position a sink is asked about. */
export interface SlotOriginContext {
  readonly pipeline: string;
  readonly slotName: string;
  /** The slot was there already; otherwise it was created just now. */
  readonly reused: boolean;
}
