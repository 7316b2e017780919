// @ts-check
import { forbiddenImports } from './import-rule.mjs';

const forbidden = forbiddenImports('.');
for (const line of forbidden) console.error(line);
if (forbidden.length > 0) process.exitCode = 1;
