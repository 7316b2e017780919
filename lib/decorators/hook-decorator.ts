/** Stands on a method with these parameters that returns a promise. */
export type HookDecorator<Parameters extends readonly unknown[]> = <
  F extends (...parameters: Parameters) => Promise<unknown>,
>(
  prototype: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
) => void;
