import type { Change } from '../engine/model/change.js';
import { SinkDefinitionError } from './sink-definition.error.js';

/** What may happen to a table. */
export type ChangeOp = Change['op'];

/** Which changes a method takes. */
export interface ChangeSettings {
  readonly relation: string;
  readonly ops: ReadonlySet<ChangeOp>;
}

/** Every operation: what a method takes that names none. */
const CHANGE_OPS: readonly ChangeOp[] = [
  'insert',
  'update',
  'delete',
  'truncate',
];

/**
 * What `@OnChange()` was given.
 *
 * @param place how messages name the method
 * @throws {SinkDefinitionError} when it cannot work
 */
export function changeSettings(
  place: string,
  settings: unknown,
): ChangeSettings {
  if (!isGiven(settings) || !isTableName(settings.relation)) {
    throw new SinkDefinitionError(
      `${place} has @OnChange() without a table as sinks see it: schema.table, without quotes, such as 'public.orders'.`,
    );
  }
  const { relation, on = CHANGE_OPS, ...others } = settings;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw new SinkDefinitionError(
      `${place} has @OnChange('${relation}') with the setting "${unknown}", which is not known; "on" is the only one.`,
    );
  }
  if (!Array.isArray(on) || on.length === 0 || !on.every(isOp)) {
    throw new SinkDefinitionError(
      `${place} has @OnChange('${relation}') whose "on" is no list of ${CHANGE_OPS.join(', ')}; name at least one of them, or leave "on" out to take all.`,
    );
  }
  const ops = new Set<ChangeOp>(on);
  const twice = on.find((op, index) => on.indexOf(op) !== index);
  if (twice !== undefined) throw takenTwice(place, relation, twice);
  return { relation, ops };
}

/** A method would be called twice for one change. */
export function takenTwice(
  place: string,
  relation: string,
  op: ChangeOp,
): SinkDefinitionError {
  return new SinkDefinitionError(
    `${place} has @OnChange('${relation}') more than once for ${op}, and would be called twice; name it once.`,
  );
}

function isGiven(
  settings: unknown,
): settings is { readonly relation: unknown; readonly on?: unknown } {
  return (
    typeof settings === 'object' && settings !== null && 'relation' in settings
  );
}

/** As `change.relation` has it. A name in quotes is how SQL has it, and nothing would ever come. */
function isTableName(name: unknown): name is string {
  return (
    typeof name === 'string' &&
    /^[^.]+\..+$/su.test(name) &&
    !/(^|\.)"[^"]*"(\.|$)/u.test(name)
  );
}

function isOp(value: unknown): value is ChangeOp {
  return CHANGE_OPS.some((op) => op === value);
}
