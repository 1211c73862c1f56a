// What is wrong in a JSON text, in the same words in each browser, and on which line each value
// begins.

/** @type {Texts} */
const CLOSING = { "{": "}", "[": "]" };

/** @param {string} text @returns {any} JSON; an error has `row`, the line of what is wrong */
export function parseJson(text) {
  linesOf(text);
  return JSON.parse(text);
}

/**
 * @param {string} text
 * @returns {Map<string, number>} lines, from 1, by JSON Pointer; of a member, the line of its name
 */
export function linesOf(text) {
  /** @type {Map<string, number>} */
  const lines = new Map();
  // A text without its last quote ends with its line.
  // White space that JSON does not have, such as the no-break spaces of a copied text, is a word
  // that is no value.
  const tokens = text.matchAll(/"(?:[^"\\\n]|\\.)*("?)|[{}[\]:,]|[^ \t\r\n{}[\]:,"]+/g);
  let [word, quote, line, end] = ["", "", 1, 0];
  let before = { word, line };
  const next = () => {
    before = { word, line };
    const found = tokens.next().value;
    [word, quote] = [found?.[0] ?? "", found?.[1] ?? ""];
    line += text.slice(end, found?.index).split("\n").length - 1;
    end = found?.index ?? text.length;
  };
  /** @type {(message: string, row?: number) => never} */
  const fail = (message, row = line) => {
    throw Object.assign(new Error(message), { row });
  };
  /** @type {(what: string) => never} the line before is at fault */
  const missing = (what) =>
    fail(`A ${what} is missing${before.word && ` after ${before.word}`}.`, before.line);
  /** @param {string} wanted */
  const leaf = (wanted) => {
    const isText = word.startsWith('"');
    if (!word || /^[,:}\]]$/.test(word)) missing(wanted);
    if (isText && !quote) fail(`The quote that ends this text is missing: ${word}`);
    if (wanted === "name" && !isText) fail(`A name stands in quotes, and ${word} does not.`);
    try {
      return JSON.parse(word);
    } catch {
      return fail(
        isText
          ? `JSON does not take all characters of ${word}.`
          : `${word} is no value. A text stands in quotes.`,
      );
    }
  };
  /** @param {string} pointer @param {number} row */
  const value = (pointer, row) => {
    lines.set(pointer, row);
    const [opening, closing] = [word, CLOSING[word]];
    if (!closing) return void leaf("value");
    next();
    for (let index = 0; word !== closing; index += 1) {
      const start = line;
      let path = `${pointer}/${index}`;
      if (opening === "{") {
        path = `${pointer}/${leaf("name").replace(/~/g, "~0").replace(/\//g, "~1")}`;
        const first = lines.get(path);
        if (first)
          fail(
            `${word} is there twice, in ${first === line ? "line" : `lines ${first} and`} ${line}.`,
          );
        next();
        if (word !== ":") missing("colon");
        next();
      }
      value(path, start);
      next();
      if (word === closing) return;
      if (!word || /^[}\]]$/.test(word))
        fail(`The ${closing} is missing that belongs to the ${opening} of line ${row}.`);
      if (word !== ",") missing("comma");
      next();
      if (word === closing) fail(`The comma before ${closing} is one too many.`, before.line);
    }
  };
  next();
  value("", 1);
  next();
  if (word) fail(`The JSON ends before ${word}.`);
  return lines;
}

/**
 * @type {(lines: Map<string, number>, pointer: string) => number} the line of a pointer, or of the
 *   nearest value around it
 */
export const lineOf = (lines, pointer) =>
  lines.get(pointer) ?? lineOf(lines, pointer.slice(0, pointer.lastIndexOf("/")));
