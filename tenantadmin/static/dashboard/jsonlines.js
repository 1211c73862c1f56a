// On which line of a JSON text the value of a JSON Pointer begins.

/** @param {string} text @returns {any} JSON. A name that an object has twice is an error, too; `row` is its line */
export function parseJson(text) {
  const value = JSON.parse(text);
  linesOf(text);
  return value;
}

/** @param {string} text valid JSON @returns {Map<string, number>} lines, from 1, by pointer; of a member, the line of its name */
export function linesOf(text) {
  /** @type {Map<string, number>} */
  const lines = new Map();
  // Without commas and colons, which valid JSON does not need.
  const tokens = text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]]|[^\s{}[\]:,"]+/g);
  let line = 1;
  let end = 0;
  const next = () => {
    const { 0: token, index } = tokens.next().value;
    line += text.slice(end, index).split("\n").length - 1;
    end = index;
    return token;
  };
  /** @param {string} pointer @param {number} row @param {string} token */
  const value = (pointer, row, token) => {
    lines.set(pointer, row);
    if (token !== "{" && token !== "[") return;
    for (let index = 0, word = next(); word !== "}" && word !== "]"; index += 1, word = next()) {
      const isName = token === "{";
      const path = `${pointer}/${isName ? JSON.parse(word).replace(/~/g, "~0").replace(/\//g, "~1") : index}`;
      const first = lines.get(path);
      if (first) throw Object.assign(new Error(`${word} is there twice, in ${first === line ? "line" : `lines ${first} and`} ${line}.`), { row: line });
      value(path, line, isName ? next() : word);
    }
  };
  value("", 1, next());
  return lines;
}

/** @param {Map<string, number>} lines @param {string} pointer the line of a pointer, or of the nearest value around it */
export function lineOf(lines, pointer) {
  for (let path = pointer; path; path = path.slice(0, path.lastIndexOf("/"))) {
    const line = lines.get(path);
    if (line) return line;
  }
  return 1;
}
