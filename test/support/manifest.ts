/** What a Kubernetes manifest is made of. */
export type Manifest = string | readonly Manifest[] | ManifestMap;
export interface ManifestMap {
  readonly [key: string]: Manifest;
}

interface Line {
  readonly indent: number;
  readonly text: string;
}

/** The text that stands below a path of keys and indices. */
export function textAt(
  manifest: Manifest,
  ...path: readonly (string | number)[]
): string {
  const found = at(manifest, ...path);
  if (typeof found !== 'string')
    throw new Error(`${path.join('.')} of the manifest is no text.`);
  return found;
}

/** Reads the part of YAML in which manifests are written: block maps, block lists and plain or single-quoted scalars. */
export function readManifest(yaml: string): Manifest {
  const lines = yaml.split('\n').flatMap((line) => {
    const text = line.replace(/(^|\s)#.*$/, '').trimEnd();
    if (text.trim() === '') return [];
    return [{ indent: text.search(/\S/), text: text.trim() }];
  });
  return readBlock(lines);
}

/** What stands below a path of keys and indices. */
export function at(
  manifest: Manifest,
  ...path: readonly (string | number)[]
): Manifest {
  return path.reduce<Manifest>((node, key) => {
    const below =
      typeof node === 'string'
        ? undefined
        : Object.entries(node).find(([name]) => name === String(key))?.[1];
    if (below === undefined)
      throw new Error(`The manifest lacks ${path.join('.')}.`);
    return below;
  }, manifest);
}

function readBlock(lines: readonly Line[]): Manifest {
  const [first] = lines;
  if (first === undefined) return '';
  const entries = entriesOf(lines, first.indent);
  if (first.text.startsWith('- ')) return entries.map(readItem);
  return Object.fromEntries(entries.map(readPair));
}

/** Groups lines by those of the given indent; what is deeper belongs to the one above. */
function entriesOf(lines: readonly Line[], indent: number): Line[][] {
  const entries: Line[][] = [];
  for (const line of lines) {
    if (line.indent === indent) entries.push([line]);
    else entries.at(-1)?.push(line);
  }
  return entries;
}

function readItem([first, ...rest]: readonly Line[]): Manifest {
  if (first === undefined) return '';
  const text = first.text.slice(2);
  if (!/^[\w.-]+:( |$)/.test(text)) return scalar(text);
  return readBlock([{ indent: first.indent + 2, text }, ...rest]);
}

function readPair([first, ...rest]: readonly Line[]): [string, Manifest] {
  const [, key = '', value = ''] =
    /^([\w./-]+): ?(.*)$/.exec(first?.text ?? '') ?? [];
  if (key === '') throw new Error(`This is no pair: ${first?.text}`);
  return [key, value === '' ? readBlock(rest) : scalar(value)];
}

function scalar(text: string): string {
  return text.replace(/^'(.*)'$/, '$1');
}
