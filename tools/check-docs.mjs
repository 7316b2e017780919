// @ts-check
// Type-checks every ```ts block of the documentation as a module of its own, and follows its links.

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import ts from 'typescript';
import { codeBlocks, headingAnchors, relativeLinks } from './markdown.mjs';

const OUT = '.build/docs';

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...readdirSync('docs')
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

/** @type {string[]} */
const faults = [];

for (const page of pages) {
  for (const { line, target, anchor } of relativeLinks(
    readFileSync(page, 'utf8'),
  )) {
    const file = target === '' ? page : join(dirname(page), target);
    if (!existsSync(file)) {
      faults.push(`${page}:${line}: ${target} does not exist`);
    } else if (
      anchor !== undefined &&
      file.endsWith('.md') &&
      !headingAnchors(readFileSync(file, 'utf8')).includes(anchor)
    ) {
      faults.push(`${page}:${line}: no heading #${anchor} in ${file}`);
    }
  }
}

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
/** @type {Map<string, { page: string, line: number }>} */
const origins = new Map();
for (const page of pages) {
  for (const { line, code } of codeBlocks(readFileSync(page, 'utf8'), 'ts')) {
    const name = `${page.replace(/\W/g, '-')}-${line}.ts`;
    const file = resolve(OUT, name);
    // A block without imports is a script to the compiler, and would share its names with all others.
    writeFileSync(file, `${code}export {};\n`);
    origins.set(file, { page, line });
  }
}

const { config } = ts.readConfigFile('tsconfig.json', (path) =>
  readFileSync(path, 'utf8'),
);
const { options } = ts.convertCompilerOptionsFromJson(
  {
    ...config.compilerOptions,
    allowJs: false,
    noUnusedLocals: false,
    noUnusedParameters: false,
  },
  '.',
);
const program = ts.createProgram([...origins.keys()], options);
for (const diagnostic of ts.getPreEmitDiagnostics(program)) {
  const text = ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n');
  const { file, start } = diagnostic;
  if (file === undefined) {
    faults.push(text);
    continue;
  }
  const at = file.getLineAndCharacterOfPosition(start ?? 0).line;
  const origin = origins.get(resolve(file.fileName));
  faults.push(
    origin === undefined
      ? `${relative('.', file.fileName)}:${at + 1}: ${text}`
      : `${origin.page}:${origin.line + at}: ${text}`,
  );
}

for (const fault of faults) console.error(fault);
console.log(
  `${pages.length} pages, ${origins.size} blocks, ${faults.length} faults`,
);
if (faults.length > 0) process.exitCode = 1;
