"""``leak-fix``: stop serving one user's results to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analytics.advice.edits import RuleEdit, new_rule_id
from analytics.advice.proposal import Kind, Proposal
from analytics.replay.evidence import EvidenceQuery
from analytics.reports.per_user import is_per_user_sql
from logs.quoting import quote_text
from rules.language import complete_rule

if TYPE_CHECKING:
    from analytics.advice.proposal import Current

#: The most statements that the new rule names.
_MAX_STATEMENTS: Final = 20


def propose(current: Current) -> list[Proposal]:
    """Propose a bypass for statements that depend on the user, if several users shared a cached result."""
    proposals = []
    for _, rule in current.cache_rules():
        evidence = _evidence(current, rule.id)
        rows = current.connection.execute(evidence.sql).fetchall()
        if not rows:
            continue
        statements = sorted(row[0] for row in rows)
        rule_id = new_rule_id(f"bypass-{rule.id}-per-user", current.ids)
        conditions: dict[str, Any] = {"standardizedSql": {"in": statements}}
        new = complete_rule(
            {
                "id": rule_id,
                "name": f"{rule.name}: results that depend on the user",
                "action": "bypass",
                "conditions": {"all": [rule.conditions, conditions]},
            }
        )
        edits = (RuleEdit.insert(new, before=rule.id),)
        if current.is_clean(edits):
            served, users = sum(row[1] for row in rows), max(row[2] for row in rows)
            proposals.append(
                Proposal(
                    Kind.LEAK_FIX,
                    rule.id,
                    f"Do not share results of {rule.name} that depend on who asks",
                    (
                        f"Statements that call a function of the user or session: {len(statements)}.",
                        f"{served} requests for them shared a cached result with up to {users} users.",
                        "With the bypass each user gets their own result.",
                    ),
                    edits,
                    (evidence,),
                )
            )
    return proposals


def _evidence(current: Current, rule_id: str) -> EvidenceQuery:
    return EvidenceQuery(
        name="shared-results",
        sql="SELECT standardizedSql, sum(served)::BIGINT AS served, max(users) AS users FROM ("  # noqa: S608
        " SELECT standardizedSql, cacheKey, count(*) AS served, count(DISTINCT userName) AS users"
        f" FROM proxy_logs WHERE {current.days} AND matchedRule = {quote_text(rule_id)}"
        " AND cacheKey IS NOT NULL AND cacheStatus IN ('HIT', 'MISS', 'HOLD')"
        f" AND {is_per_user_sql('standardizedSql')}"
        " GROUP BY standardizedSql, cacheKey HAVING count(DISTINCT userName) > 1"
        f") GROUP BY standardizedSql ORDER BY served DESC, standardizedSql LIMIT {_MAX_STATEMENTS}",
    )
