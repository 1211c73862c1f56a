// Run the vectors against a decision written from docs/rules.md alone: `node run.mjs`. Replace `decide` by your own.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

const STATUSES = { cache: ["HIT", "MISS"], bypass: ["BYPASS"], invalidate: ["BYPASS"], deny: ["BLOCKED"] };

/** What the Gateway does with a request. */
function decide(rules, request) {
  const matching = rules.filter((rule) => (rule.enabled ?? true) && holds(rule.conditions, request));
  if (!matching.length) return { ruleId: null, statuses: ["PASSTHROUGH"], key: null, fires: [] };
  const [rule] = matching;
  const action = rule.action ?? (rule.invalidateRules ? "invalidate" : "cache");
  const values = (rule.varyBy ?? []).map((column) => [column, request[column] ?? null]);
  const key = action === "cache" && values.every(([, value]) => value !== null) ? Object.fromEntries(values) : null;
  return {
    ruleId: rule.id,
    statuses: action === "cache" && !key ? ["BYPASS"] : STATUSES[action],
    key,
    fires: action === "deny" ? [] : matching.filter((one) => one.invalidateRules?.length).map((one) => one.id),
  };
}

const holds = (conditions, request) => Object.entries(conditions).every(([name, value]) => test(name, value, request));

function test(name, value, request) {
  if (name === "not") return !holds(value, request);
  if (name === "all") return value.every((part) => holds(part, request));
  if (name === "any") return value.some((part) => holds(part, request));
  const { ignoreCase = false, ...operators } = value !== null && typeof value === "object" ? value : { eq: value };
  return Object.entries(operators).every(([operator, operand]) => compare(operator, operand, request[name] ?? null, ignoreCase));
}

function compare(operator, operand, seen, ignores) {
  if (operator === "exists") return (seen !== null) === operand;
  if (seen === null) return operator === "ne" || operator === "notIn";
  if (ignores) [seen, operand] = [fold(seen), fold(operand)];
  const equals = (one) => (Array.isArray(seen) ? seen.length > 0 && seen.every((table) => table === one) : seen === one);
  const matches = (pattern) => seen.some((table) => glob(pattern, table));
  switch (operator) {
    case "eq": return equals(operand);
    case "ne": return !equals(operand);
    case "in": return operand.some(equals);
    case "notIn": return !operand.some(equals);
    case "containsAny": return operand.some(matches);
    case "containsAll": return operand.every(matches);
    case "contains": return seen.includes(operand);
    case "startsWith": return seen.startsWith(operand);
    case "endsWith": return seen.endsWith(operand);
    case "gt": return seen > operand;
    case "gte": return seen >= operand;
    case "lt": return seen < operand;
    case "lte": return seen <= operand;
    default: throw new Error(operator);
  }
}

const glob = (pattern, name) => new RegExp(`^${pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`, "su").test(name);

/** Unicode's simple case folding: one character for each. */
function fold(value) {
  if (Array.isArray(value)) return value.map(fold);
  return typeof value === "string" ? Array.from(value, foldCharacter).join("") : value;
}

function foldCharacter(character) {
  if ("İı".includes(character)) return character;
  const upper = character.toUpperCase();
  return ([...upper].length === 1 ? upper : character).toLowerCase();
}

const vectors = JSON.parse(readFileSync(new URL("decisions.json", import.meta.url), "utf8"));
const wrong = [...vectors.keys()].filter((n) => !isDeepStrictEqual(decide(vectors[n].rules, vectors[n].request), vectors[n].expected));
console.log(`${vectors.length - wrong.length} of ${vectors.length} vectors hold. Wrong: ${wrong.slice(0, 10)}`);
process.exitCode = wrong.length ? 1 : 0;
