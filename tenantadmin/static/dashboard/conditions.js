// The conditions of a rule as a sentence.

/** @type {Texts} */
const OPERATORS = {
  eq: "is",
  ne: "is not",
  in: "is one of",
  notIn: "is none of",
  contains: "contains",
  startsWith: "starts with",
  endsWith: "ends with",
  regex: "matches",
  gt: ">",
  gte: "≥",
  lt: "<",
  lte: "≤",
  containsAny: "has any of",
  containsAll: "has all of",
  cidr: "in",
};

/** @type {Record<string, string[]>} what is meant if it is true, and if it is false */
const FLAGS = {
  isReadOnly: ["only reads", "does not only read"],
  isDDL: ["changes a schema", "changes no schema"],
  isDataChange: ["changes data", "changes no data"],
  hasParameters: ["has parameters", "has no parameters"],
  hasNonDeterministicFunctions: [
    "calls functions such as now()",
    "calls no function such as now()",
  ],
};

/** @param {any} value */
const operand = (value) => (Array.isArray(value) ? value.join(", ") : String(value));

/** @param {string} key @param {any} test */
function one(key, test) {
  if (typeof test === "boolean")
    return key in FLAGS ? FLAGS[key][test ? 0 : 1] : test ? key : `not ${key}`;
  if (test === null || typeof test !== "object") return `${key} is ${operand(test)}`;
  return Object.entries(test)
    .filter(([operator]) => operator !== "ignoreCase")
    .map(([operator, value]) => {
      if (key === "tables" && operator === "containsAny") return `uses ${operand(value)}`;
      if (operator === "exists") return `${key} ${value ? "exists" : "is absent"}`;
      return `${key} ${OPERATORS[operator] ?? operator} ${operand(value)}`;
    })
    .join(" and ");
}

/** @param {Record<string, any>} part @returns {string} */
const alternative = (part) =>
  Array.isArray(part?.all) && part.all.length > 1 ? `(${asSentence(part)})` : asSentence(part);

/** @param {Record<string, any> | undefined} conditions @returns {string} */
export function asSentence(conditions) {
  const parts = Object.entries(conditions ?? {}).map(([key, value]) => {
    if (key === "not") return `not (${asSentence(value)})`;
    // What is joined by “and” needs brackets in an “or” alone.
    if (key === "all" && Array.isArray(value)) return value.map(asSentence).join(" and ");
    if (key === "any" && Array.isArray(value)) return `(${value.map(alternative).join(" or ")})`;
    return one(key, value);
  });
  return parts.join(" and ") || "every request";
}
