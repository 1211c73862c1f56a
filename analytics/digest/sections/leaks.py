"""Leaks: cached results that depend on the user and were served to several users. Users are not named."""

# Queries consist of constants, days, columns, quoted rule ids and hashes.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analytics.digest.facts import LEAKS, FactQuery, Name, NameKind, Section, Unit
from analytics.reports.leak_sql import leak_counts_sql, leak_findings_sql
from logs.definitions import SHARED, hash_sql
from rules.conditions import CONDITION_KEYS
from tenantadmin.lib.core.rendering import dump_json

if TYPE_CHECKING:
    from analytics.digest.facts import Fact
    from analytics.digest.periods import DigestPeriod
    from analytics.digest.reading import DigestLog

#: The section names at most this many.
_MOST_NAMED: Final = 5
#: A digest that found more leaking statements, or larger ones, keeps none of them. Their leaks stay open.
_MOST_KEPT: Final = 20
_MOST_BYTES: Final = 64 * 1024
#: The condition keys that say what is asked, and not who asks.
_COLUMNS: Final = tuple(
    key.name
    for key in CONDITION_KEYS.values()
    if not key.caller_supplied and key.name not in {"userName", "clientIp"}
)
_REASONS: Final = {
    "certain": "depends on the user",
    "likely": "may depend on the user",
}


def find_leaking(log: DigestLog, period: DigestPeriod) -> list[dict[str, Any]]:
    """Return the statements that leaked, each with the values that all of its requests had, by condition key.

    The list is empty if they are too many or too large.
    """
    findings = leak_findings_sql(first=period.first, last=period.last, warehouse=log.warehouse)
    columns = ", ".join(f'list(DISTINCT "{name}")' for name in _COLUMNS)
    rows = log.connection.execute(
        f"SELECT {columns} FROM proxy_logs JOIN (SELECT DISTINCT statement FROM ({findings}))"
        " ON standardizedSql IS NOT DISTINCT FROM statement"
        f" WHERE {period.sql} AND {SHARED}"
        f" GROUP BY standardizedSql ORDER BY standardizedSql LIMIT {_MOST_KEPT + 1}"
    ).fetchall()
    leaking = [
        {name: values[0] for name, values in zip(_COLUMNS, row, strict=True) if len(values) == 1}
        for row in rows
    ]
    # The verdict of each tenant reads them.
    return leaking if len(rows) <= _MOST_KEPT and len(dump_json(leaking)) <= _MOST_BYTES else []


def leaks_section(log: DigestLog, period: DigestPeriod) -> Section | None:
    """Return the worst leaks: certain leaks first, then the most often served."""
    findings = leak_findings_sql(first=period.first, last=period.last, warehouse=log.warehouse)
    rows = log.rows(
        f"SELECT grade, ruleId, statement, {hash_sql('statement')} AS hash FROM ({findings}) "
        f"ORDER BY grade, served DESC, ruleId, hash LIMIT {_MOST_NAMED}"
    )
    if not rows:
        return None
    sentences: list[str] = []
    facts: list[Fact] = []
    names: list[Name] = []
    for number, row in enumerate(rows, start=1):
        prefix = f"leak-{number}"
        sql = leak_counts_sql(
            first=period.first, last=period.last, rule_id=row["ruleId"], statement_hash=row["hash"]
        )
        own = f"FROM ({sql})"
        facts += log.read_facts(
            [
                FactQuery(f"{prefix}-keys", Unit.COUNT, f"SELECT keys {own}"),
                FactQuery(f"{prefix}-served", Unit.COUNT, f"SELECT served {own}"),
                FactQuery(f"{prefix}-users", Unit.COUNT, f"SELECT users {own}"),
            ]
        )
        names.append(
            Name(id=f"{prefix}-statement", kind=NameKind.STATEMENT, value=row["statement"], href=None)
        )
        rule = "without a rule"
        if row["ruleId"] is not None:
            names.append(Name(id=f"{prefix}-rule", kind=NameKind.RULE, value=row["ruleId"], href=None))
            rule = f"by {{{prefix}-rule}}"
        reason = _REASONS[row["grade"]]
        counts = f"results: {{{prefix}-keys}}, users: {{{prefix}-users}}, times served: {{{prefix}-served}}"
        sentences.append(
            f"Several users shared results of a statement that {reason}, {rule}; {counts}. "
            f"{{{prefix}-statement}}"
        )
    return Section(LEAKS, "Leaks", sentences, facts, names)
