// @ts-check
// What the checks read out of the Markdown files.

/**
 * Fenced blocks of a language, and the line on which the code of each begins.
 *
 * @param {string} markdown
 * @param {'ts' | 'sql' | 'json'} language
 * @returns {{ line: number, code: string }[]}
 */
export function codeBlocks(markdown, language) {
  const block = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms');
  return [...markdown.matchAll(block)].map((match) => ({
    line: lineAt(markdown, match.index) + 1,
    code: match[1] ?? '',
  }));
}

/**
 * Links to files of the checkout and to headings; links to the web are left out. An empty target is the page itself.
 *
 * @param {string} markdown
 * @returns {{ line: number, target: string, anchor: string | undefined }[]}
 */
export function relativeLinks(markdown) {
  const prose = markdown.replace(/^```.*?^```$/gms, (block) =>
    block.replace(/[^\n]/g, ''),
  );
  return [...prose.matchAll(/\]\(([^)\s#]*)(?:#([^)\s]*))?\)/g)]
    .filter((match) => !/^[a-z]+:/.test(match[1] ?? ''))
    .map((match) => ({
      line: lineAt(prose, match.index),
      target: match[1] ?? '',
      anchor: match[2],
    }));
}

/**
 * The anchors that headings get.
 *
 * @param {string} markdown
 */
export function headingAnchors(markdown) {
  const prose = markdown.replace(/^```.*?^```$/gms, '');
  return [...prose.matchAll(/^#+ (.+)$/gm)].map((match) =>
    (match[1] ?? '')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  );
}

/** @param {string} text @param {number} index */
function lineAt(text, index) {
  return text.slice(0, index).split('\n').length;
}
