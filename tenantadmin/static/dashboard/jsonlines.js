// On which line of a JSON text the value of a JSON Pointer begins.

/** @param {string} text valid JSON @returns {Map<string, number>} lines, from 1, by pointer; of a member, the line of its name */
export function linesOf(text) {
  /** @type {Map<string, number>} */
  const lines = new Map();
  let at = 0;
  let line = 1;
  const skip = () => {
    for (; at < text.length && " \t\r\n".includes(text[at]); at += 1) if (text[at] === "\n") line += 1;
  };
  const string = () => {
    const start = at;
    for (at += 1; text[at] !== '"'; at += 1) if (text[at] === "\\") at += 1;
    at += 1;
    return JSON.parse(text.slice(start, at));
  };
  /** @param {string} pointer */
  const value = (pointer) => {
    if (!lines.has(pointer)) lines.set(pointer, line);
    if (text[at] === "{" || text[at] === "[") {
      const isObject = text[at] === "{";
      at += 1;
      skip();
      for (let index = 0; text[at] !== "}" && text[at] !== "]"; index += 1) {
        let key = String(index);
        const start = line;
        if (isObject) {
          key = string().replace(/~/g, "~0").replace(/\//g, "~1");
          skip();
          at += 1;
          skip();
        }
        lines.set(`${pointer}/${key}`, start);
        value(`${pointer}/${key}`);
        skip();
        if (text[at] === ",") at += 1;
        skip();
      }
      at += 1;
    } else if (text[at] === '"') string();
    else while (at < text.length && !",]} \t\r\n".includes(text[at])) at += 1;
  };
  skip();
  value("");
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
