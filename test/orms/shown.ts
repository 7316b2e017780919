import { readFileSync } from 'node:fs';

/** The block in which a page would show a file of `wiring`, as it stands. */
export function blockOf(name: string): string {
  return `\`\`\`typescript\n${read(`wiring/${name}.ts`)}\`\`\`\n`;
}

/** A file, by its path from this folder. */
export function read(path: string): string {
  return readFileSync(new URL(path, import.meta.url), 'utf8');
}
