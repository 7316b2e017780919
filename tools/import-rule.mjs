// @ts-check
// Holds the import rule of lib/engine: data runs through the rooms in one direction.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import ts from 'typescript';

/**
 * What each room may import, besides itself, `model`, and the types of `options`.
 *
 * @type {Readonly<Record<string, readonly string[]>>}
 */
const ALLOWED = {
  model: [],
  options: [],
  telemetry: [],
  values: [],
  server: ['options', 'telemetry', 'values'],
  source: ['server'],
  decode: ['values'],
  streamed: ['decode'],
  assemble: [],
  checkpoint: ['options', 'server'],
  deliver: ['server', 'checkpoint'],
  snapshot: ['deliver', 'server', 'telemetry', 'values'],
};

/** What joins the rooms: the file, and the room of the same name. */
const JOINS_ROOMS = /^pipeline(\.ts)?$/;

/**
 * @typedef {{ specifier: string, typeOnly: boolean, line: number }} Import
 */

/**
 * Every import of a module: declarations, re-exports, `import()` and `import('…')` types.
 *
 * @param {ts.SourceFile} source
 * @returns {Import[]}
 */
function importsOf(source) {
  /** @type {Import[]} */
  const found = [];
  /** @type {(node: ts.Node | undefined, typeOnly: boolean) => void} */
  const add = (node, typeOnly) => {
    if (node === undefined || !ts.isStringLiteralLike(node)) return;
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    found.push({ specifier: node.text, typeOnly, line: line + 1 });
  };
  /** @type {(node: ts.Node) => void} */
  const visit = (node) => {
    if (ts.isImportDeclaration(node)) {
      const clause = node.importClause;
      add(
        node.moduleSpecifier,
        clause?.phaseModifier === ts.SyntaxKind.TypeKeyword,
      );
    } else if (ts.isExportDeclaration(node)) {
      add(node.moduleSpecifier, node.isTypeOnly);
    } else if (
      ts.isImportTypeNode(node) &&
      ts.isLiteralTypeNode(node.argument)
    ) {
      add(node.argument.literal, true);
    } else if (
      ts.isCallExpression(node) &&
      node.expression.kind === ts.SyntaxKind.ImportKeyword
    ) {
      add(node.arguments[0], false);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/**
 * Why a file of lib/engine must not import this, or `null` when it may.
 *
 * @param {string} engine absolute path of lib/engine
 * @param {string} file absolute path of the importing file
 * @param {Import} imported
 */
function fault(engine, file, imported) {
  if (/^@nestjs(\/|$)/.test(imported.specifier)) {
    return 'lib/engine imports nothing from @nestjs';
  }
  const [from = '', ...rest] = relative(engine, file).split(sep);
  if (file.endsWith('.spec.ts')) return null;
  if (!imported.specifier.startsWith('.')) return null;
  const target = relative(engine, resolve(dirname(file), imported.specifier));
  const [to = '', ...inside] = target.split(sep);
  if (to === '..') return 'lib/engine imports nothing from outside it';
  if (JOINS_ROOMS.test(from)) return null;
  if (rest.length === 0) {
    return inside.length === 0 ? null : 'only pipeline may join the rooms';
  }
  const allowed = ALLOWED[from];
  if (allowed === undefined) {
    return `the room ${from} is not in the table of tools/import-rule.mjs`;
  }
  if (to === from || to === 'model' || allowed.includes(to)) return null;
  if (imported.typeOnly && to === 'options' && from !== 'model') {
    return null;
  }
  return `${from} must not import ${to}`;
}

/**
 * The forbidden imports of lib/engine below a root folder, one line each.
 *
 * @param {string} root
 * @returns {string[]}
 */
export function forbiddenImports(root) {
  const engine = join(resolve(root), 'lib', 'engine');
  return readdirSync(engine, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => {
      const file = join(engine, name);
      const text = readFileSync(file, 'utf8');
      const source = ts.createSourceFile(
        file,
        text,
        ts.ScriptTarget.Latest,
        true,
      );
      return importsOf(source).flatMap((imported) => {
        const why = fault(engine, file, imported);
        return why === null
          ? []
          : [`lib/engine/${name}:${imported.line}: ${why}`];
      });
    });
}
