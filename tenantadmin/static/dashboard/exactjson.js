// JSON without floats: a number of a result stays the text that the service wrote.

/** A number as it is written. */
export class Exact {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }

  /** A value to sort by. Whole numbers of any size are compared exactly. */
  get order() {
    return /^-?\d+$/.test(this.text) ? BigInt(this.text) : Number(this.text);
  }
}

// TypeScript does not know yet what JSON tells of the source, and takes as it is.
const { parse, rawJSON, stringify } = /** @type {any} */ (JSON);

/** @type {(text: string) => any} numbers become `Exact` */
export const parseExact = (text) =>
  parse(
    text,
    (
      /** @type {string} */ _,
      /** @type {any} */ value,
      /** @type {{source: string}} */ { source },
    ) => (typeof value === "number" ? new Exact(source) : value),
  );

/** @type {(value: any) => string} what `parseExact` read */
export const writeExact = (value) =>
  stringify(value, (/** @type {string} */ _, /** @type {any} */ one) =>
    one instanceof Exact ? rawJSON(one.text) : one,
  );
