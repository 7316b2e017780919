/** An option that cannot work. Raised before anything is touched; the message never contains the option's value. */
export class ReplicantConfigError extends Error {
  override readonly name = 'ReplicantConfigError';

  constructor(
    /** Name of the option, such as `slotName`. */
    readonly option: string,
    /** What is wrong and what to do. */
    readonly problem: string,
  ) {
    super(`Option ${option}: ${problem}`);
  }
}
