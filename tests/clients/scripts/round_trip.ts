/**
 * What a program does with the types that openapi-typescript makes from the contract, and openapi-fetch.
 *
 *     node round_trip.js BASE_URL PERSONAL_ACCESS_TOKEN
 *
 * `tsc --strict` checks this file against the types in `contract.ts`.
 */
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./contract.js";

type Rule = components["schemas"]["RuleRequest"];

const [baseUrl, pat] = process.argv.slice(2);
assert(baseUrl !== undefined && pat !== undefined);
const publicClient = createClient<paths>({ baseUrl });

// Sign-in: the grant type decides what else the body has.
const wrong = await publicClient.POST("/oauth/token", { body: { grant_type: "pat_exchange", pat: "nonsense" } });
assert(wrong.error !== undefined && "error_description" in wrong.error);
assert.equal(wrong.error.error, "invalid_grant");
const loggedOut = await publicClient.POST("/auth/logout", { body: { token: "nonsense" } });
assert.equal(loggedOut.response.status, 200);
const used = await publicClient.POST("/auth/magic-link/verify", { body: { token: "nonsense" } });
assert.equal(used.error?.error, "unauthorized");
const token = await publicClient.POST("/oauth/token", { body: { grant_type: "pat_exchange", pat } });
assert(token.data !== undefined);
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token.data.access_token}` } });

const tenants = await client.GET("/config/tenants");
const tenant = tenants.data?._links.items[0]?.name;
assert(tenant !== undefined);
const path = { tenant };

// Rules: add one, then send back what was read with one change.
const empty = await client.GET("/config/tenants/{tenant}/rules", { params: { path } });
const orders: Rule = {
  id: "orders",
  ttlSeconds: 600,
  conditions: {
    tables: { containsAny: ["sales.orders"] },
    any: [{ userName: "Ana" }, { not: { isReadOnly: false } }],
  },
};
const added = await client.PUT("/config/tenants/{tenant}/rules", {
  params: { path, header: { "If-Match": empty.response.headers.get("ETag") ?? "" } },
  body: { rules: [orders] },
});
assert(added.data !== undefined);
assert.deepEqual(added.data.rules[0]?.conditions, orders.conditions);
const changed = await client.PUT("/config/tenants/{tenant}/rules", {
  params: { path, header: { "If-Match": added.response.headers.get("ETag") ?? "" } },
  body: { ...added.data, rules: added.data.rules.map((rule) => ({ ...rule, ttlSeconds: 1200 })) },
});
assert.equal(changed.data?.rules[0]?.ttlSeconds, 1200);
const stale = await client.PUT("/config/tenants/{tenant}/rules", {
  params: { path, header: { "If-Match": empty.response.headers.get("ETag") ?? "" } },
  body: changed.data,
});
assert.equal(stale.response.status, 409);
assert(stale.error !== undefined);
assert.equal(stale.error.error, "concurrent_change");
const lint = await client.POST("/config/rules/validate", {
  body: { rules: [{ id: "a", invalidateRules: ["gone"] }] },
});
assert(lint.error !== undefined && "valid" in lint.error);
const codes: components["schemas"]["FindingCode"][] = lint.error.errors.map((finding) => finding.code);
assert.deepEqual(codes, ["dangling-invalidate-reference"]);

// Summaries, SQL and raw logs.
const year = await client.GET("/tenants/{tenant}/summaries/{year}", {
  params: { path: { ...path, year: "2026" } },
});
assert.deepEqual([year.data?.totalCacheHits, year.data?.totalHits], [1, 3]);
const day = await client.GET("/tenants/{tenant}/summaries/{year}/{month}/{day}", {
  params: { path: { ...path, year: "2026", month: "03", day: "01" } },
});
assert.equal(day.data?.queries[0]?.cacheStatus, "HIT");
const rows = await client.POST("/tenants/{tenant}/query", {
  params: { path },
  body: { sql: "SELECT count(*) AS n FROM proxy_logs WHERE day = '2026-03-01'" },
});
assert.deepEqual(rows.data?.rows, [{ n: 3 }]);
assert.equal(rows.response.headers.get("X-Row-Count"), "1");
const refused = await client.POST("/tenants/{tenant}/query", {
  params: { path },
  body: { sql: "DESCRIBE proxy_logs" },
});
assert.equal(refused.error?.error, "query_rejected");
const hour = { ...path, year: "2026", month: "03", day: "01", hour: "07" };
const files = await client.GET("/tenants/{tenant}/logs/{year}/{month}/{day}/{hour}", { params: { path: hour } });
const file = files.data?._links.items[0]?.name;
assert(file !== undefined);
const stored = await client.GET("/tenants/{tenant}/logs/{year}/{month}/{day}/{hour}/{file}", {
  params: { path: { ...hour, file } },
  parseAs: "text",
});
assert.equal(stored.data?.trim().split("\n").length, 3);

// Markers.
const marker = await client.POST("/tenants/{tenant}/invalidation-markers", {
  params: { path },
  body: { markerId: "m1", targetRuleId: "orders" },
});
assert.equal(marker.data?.ttlSeconds, 1200);
const listed = await client.GET("/tenants/{tenant}/invalidation-markers", {
  params: { path, query: { status: "active" } },
});
assert.deepEqual(listed.data?.markers, [marker.data]);
console.log("done");
