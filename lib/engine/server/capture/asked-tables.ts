import { shownName } from '../../model/shown-name.js';

/**
 * Finds tables that a sink asks for by name and that are not captured: nothing of them ever comes.
 *
 * @param asked - as `change.relation` has them: `schema.table`
 * @param captured - the same of those that are
 * @param remedy - what to do where the name is right
 * @returns a sentence for each
 */
export function adviseAsked(
  asked: readonly string[],
  captured: readonly string[],
  remedy: string,
): string[] {
  const known = new Set(captured);
  return asked
    .filter((name) => !known.has(name))
    .toSorted()
    .map(
      (name) =>
        `the sink asks for changes of ${shownName(name)}, which is not captured, so nothing of it comes; correct the name, or ${remedy}`,
    );
}
