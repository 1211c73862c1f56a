// Run the vectors against code written from docs/rules.md, docs/gateway.md and docs/protocols.md alone: `node run.mjs`.
// Replace `decide`, `answer`, `findControl`, `makeKey`, `refuse` and `verify` by your own.

import { createPublicKey, verify as isSignature } from "node:crypto";
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

/** Whether the cached result of a rule, born at `bornAt`, is served at `at` (epoch ms). */
function answer(rule, markers, bornAt, at) {
  const miss = { status: "MISS", missReason: "no-cache-entry", cacheAgeSeconds: null, refreshes: false };
  if (bornAt === null) return miss;
  const expiresAt = bornAt + 1000 * rule.ttlSeconds;
  const isInvalid = markers.some(
    (marker) => marker.targetRuleId === rule.id && !marker.deleted && Date.parse(marker.invalidatedAt) >= bornAt,
  );
  if (isInvalid || at >= expiresAt + 1000 * (rule.staleWhileRevalidate ?? 0)) {
    return { ...miss, missReason: at >= expiresAt ? "ttl-expired" : "invalidation-marker" };
  }
  return { status: "HIT", missReason: null, cacheAgeSeconds: Math.floor((at - bornAt) / 1000), refreshes: at >= expiresAt };
}

const SESSION = new Set(
  "BEGIN START COMMIT END ROLLBACK ABORT SAVEPOINT RELEASE SET UNSET RESET USE DISCARD DEALLOCATE LISTEN UNLISTEN".split(" "),
);

/** Type and status of a control statement, null for others. Of several, all must be such. */
function findControl(text, adapter) {
  const parts = text.split(";").filter((part) => part.trim());
  const found = parts.map((part) => findOne(withoutComments(part).toUpperCase(), adapter));
  return parts.length && !found.includes(null) && (parts.length === 1 || !/['"$]/.test(text)) ? found[0] : null;
}

function findOne(text, adapter) {
  const [first = "", second] = text.match(/[A-Z]+/g) ?? [];
  const spoofed = (statementType) => ({ statementType, cacheStatus: "SPOOFED" });
  if (/^SELECT\s+PG_ADVISORY_UNLOCK_ALL\(\)$/.test(text)) return spoofed("SELECT");
  if (first === "ALTER" && second === "SESSION") return spoofed("ALTER SESSION");
  if (SESSION.has(first) || (first === "SHOW" && adapter === "postgresql")) return spoofed(first);
  return ["FETCH", "MOVE", "CLOSE"].includes(first) ? { statementType: first, cacheStatus: "EXECUTOR" } : null;
}

const COMMENT = /('(?:[^']|'')*'|"(?:[^"]|"")*")|--[^\n]*|\/\*[\s\S]*?\*\//g;
const withoutComments = (text) => text.replace(COMMENT, (_, kept) => kept ?? "").trim();

/** What is in the key beside tenant, `cacheBust`, rule and `varyBy`. */
const makeKey = ({ text, parameterValues, context }) =>
  JSON.stringify([withoutComments(text), parameterValues, context], (_, value) =>
    value?.constructor === Object ? Object.fromEntries(Object.entries(value).sort()) : value,
  );

/** What the consumer is sent. Statuses of HTTP are 200. */
function refuse(adapter, status, message) {
  const state = { BLOCKED: "42501", INVALIDATION_ERROR: "58000", AUTH_ERROR: "28P01" }[status];
  const isFinal = status === "AUTH_ERROR";
  if (adapter === "snowflake") {
    const code = isFinal ? "390303" : "003001";
    return { httpStatus: 200, body: { success: false, code, message, data: { errorCode: code, sqlState: state } } };
  }
  if (adapter === "databricks") {
    const TStatus = { statusCode: 3, sqlState: state, errorMessage: message, displayMessage: message };
    return { httpStatus: 200, TStatus };
  }
  const severity = isFinal ? "FATAL" : "ERROR";
  const fields = { S: severity, V: severity, C: state, M: message };
  const texts = Object.entries(fields).map(([name, text]) => `${name}${text}\0`);
  const head = Buffer.from("E....");
  const bytes = Buffer.concat([head, Buffer.from(`${texts.join("")}\0`)]);
  bytes.writeInt32BE(bytes.length - 1, 1);
  return { fields, bytes: bytes.toString("hex") };
}

/** The user of an access token, or null if it is refused. */
function verify(token, known) {
  const [head, body, signature, ...more] = token.split(".");
  if (signature === undefined || more.length) return null;
  let header, claims;
  try {
    [header, claims] = [head, body].map((part) => JSON.parse(Buffer.from(part, "base64url").toString("utf8")));
  } catch {
    return null;
  }
  const key = known.jwks.keys.find((one) => one.kid === header?.kid);
  if (!key || header.alg !== "ES256" || !claims) return null;
  const publicKey = { key: createPublicKey({ key, format: "jwk" }), dsaEncoding: "ieee-p1363" };
  if (!isSignature("sha256", `${head}.${body}`, publicKey, Buffer.from(signature, "base64url"))) return null;
  const { iss, aud, exp, typ, tenants, tos_required: mustAcknowledge, sub } = claims;
  const isForUs = iss === known.issuer && [aud].flat().includes("tenant-admin") && typ === "access";
  const isCurrent = typeof exp === "number" && exp > known.now - known.leewaySeconds && !mustAcknowledge;
  const may = Array.isArray(tenants) && (tenants.includes("*") || tenants.includes(known.tenant));
  return isForUs && isCurrent && may && sub ? sub : null;
}

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8"));

const tokens = read("tokens.json");
const checks = {
  decisions: read("decisions.json").map((v) => isDeepStrictEqual(decide(v.rules, v.request), v.expected)),
  cached: read("cached.json").map((v) => isDeepStrictEqual(answer(v.rule, v.markers, v.bornAt, v.at), v.expected)),
  control: read("control.json").map((v) => isDeepStrictEqual(findControl(v.text, v.adapterType), v.expected)),
  keys: read("keys.json").map((v) => (makeKey(v.one) === makeKey(v.other)) === v.expected),
  refusals: read("refusals.json").map((v) => isDeepStrictEqual(refuse(v.adapterType, v.cacheStatus, v.message), v.expected)),
  tokens: tokens.vectors.map((v) => verify(v.token, tokens) === v.userName),
};
for (const [name, results] of Object.entries(checks)) {
  const wrong = [...results.keys()].filter((number) => !results[number]);
  const list = wrong.length ? ` Wrong: [${wrong.slice(0, 10).join(", ")}]` : "";
  console.log(`${name}: ${results.length - wrong.length} of ${results.length} hold.${list}`);
  if (wrong.length) process.exitCode = 1;
}
