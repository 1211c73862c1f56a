// JSON without floats: a number of a result stays the text that the service wrote.

/** A number as it is written. */
export class Exact {
  /** @param {string} text */
  constructor(text) { this.text = text; }

  toString() { return this.text; }

  /** A value to sort by. Whole numbers of any size are compared exactly. */
  get order() { return /^-?\d+$/.test(this.text) ? BigInt(this.text) : Number(this.text); }
}

const TOKEN = /\s*("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}[\]:,])/y;

/**
 * Read JSON whose numbers become `Exact`.
 * @param {string} text valid JSON
 * @returns {any}
 */
export function parseExact(text) {
  TOKEN.lastIndex = 0;
  const next = () => TOKEN.exec(text)?.[1] ?? "";
  /**
   * @param {string} token
   * @returns {any}
   */
  const value = (token) => {
    if (token === "[") {
      /** @type {any[]} */
      const list = [];
      for (let one = next(); one !== "]"; one = next()) if (one !== ",") list.push(value(one));
      return list;
    }
    if (token === "{") {
      /** @type {[string, any][]} */
      const members = [];
      for (let name = next(); name !== "}"; name = next()) {
        if (name === ",") continue;
        next();
        members.push([JSON.parse(name), value(next())]);
      }
      return Object.fromEntries(members);
    }
    return /^[-\d]/.test(token) ? new Exact(token) : JSON.parse(token);
  };
  return value(next());
}

/**
 * Write what `parseExact` read.
 * @param {any} value
 * @returns {string}
 */
export function writeExact(value) {
  if (value instanceof Exact) return value.text;
  if (Array.isArray(value)) return `[${value.map(writeExact).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}:${writeExact(one)}`).join(",")}}`;
}
