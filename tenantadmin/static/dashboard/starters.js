// Rules to begin with. The tables of the first are filled in.

/** @type {any[]} */
export const STARTERS = [
  {
    id: "reference-tables",
    name: "Reference tables, a day",
    description: "Tables that change rarely and look the same to everybody.",
    action: "cache",
    conditions: {
      tables: { containsAny: [] },
      tableCount: 1,
      isReadOnly: true,
      hasNonDeterministicFunctions: false,
    },
    ttlSeconds: 86_400,
    varyBy: [],
  },
  {
    id: "reports",
    name: "Reports, an hour per user",
    description: "Each user gets their own results again for an hour.",
    action: "cache",
    conditions: {
      statementType: "SELECT",
      tableCount: { gte: 1 },
      isReadOnly: true,
      hasNonDeterministicFunctions: false,
    },
    ttlSeconds: 3600,
    varyBy: ["userName"],
  },
  {
    id: "writes",
    name: "A write ends older results",
    description: "After a statement that changes data or tables, no older result is served.",
    action: "invalidate",
    conditions: { any: [{ isDataChange: true }, { isDDL: true }] },
    invalidateRules: ["reference-tables", "reports"],
  },
];

/**
 * The chosen starters after the rules, without those that are there.
 * @param {any[]} rules
 * @param {Set<string>} chosen ids of starters
 * @param {string[]} tables reference tables, names or patterns
 */
export function withStarters(rules, chosen, tables) {
  const taken = new Set(rules.map((rule) => rule.id));
  const added = STARTERS.filter((one) => chosen.has(one.id) && !taken.has(one.id));
  const ids = new Set([...taken, ...added.map((one) => one.id)]);
  return [
    ...rules,
    ...added.map(({ conditions, invalidateRules, ...rule }) => ({
      ...rule,
      conditions: conditions.tables
        ? { ...conditions, tables: { containsAny: tables } }
        : conditions,
      ...(invalidateRules && {
        invalidateRules: invalidateRules.filter((/** @type {string} */ id) => ids.has(id)),
      }),
    })),
  ];
}
