"""Stale risk: rules with more than 1 % of hits older than a change of a table that they read."""

# Queries consist of constants, days and quoted rule ids.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.digest.facts import FactQuery, Name, NameKind, Section, Unit
from analytics.reports.stale_sql import stale_totals_sql
from logs.quoting import quote_value

if TYPE_CHECKING:
    from analytics.digest.facts import Fact
    from analytics.digest.periods import DigestPeriod
    from analytics.digest.reading import DigestLog

_MOST: Final = 5


def stale_section(log: DigestLog, period: DigestPeriod) -> Section | None:
    """Return the rules with the most hits at risk. The report of stale hits lists the tables."""
    totals = stale_totals_sql(first=period.first, last=period.last, warehouse=log.warehouse)
    rows = log.rows(
        f"SELECT ruleId FROM ({totals}) WHERE ruleId IS NOT NULL AND 100 * atRisk > hits "
        f"ORDER BY atRisk DESC, ruleId LIMIT {_MOST}"
    )
    if not rows:
        return None
    sentences: list[str] = []
    facts: list[Fact] = []
    names: list[Name] = []
    for number, row in enumerate(rows, start=1):
        prefix = f"stale-{number}"
        own = f"FROM ({totals}) WHERE ruleId = {quote_value(row['ruleId'])}"
        facts += log.read_facts(
            [
                FactQuery(f"{prefix}-risk", Unit.COUNT, f"SELECT atRisk {own}"),
                FactQuery(f"{prefix}-hits", Unit.COUNT, f"SELECT hits {own}"),
            ]
        )
        names.append(Name(id=f"{prefix}-rule", kind=NameKind.RULE, value=row["ruleId"], href=None))
        counts = f"{{{prefix}-risk}} of {{{prefix}-hits}}"
        sentences.append(
            f"Hits of {{{prefix}-rule}} that were older than a change of a table that they read: {counts}."
        )
    sentences += [
        "Hits without an age in the log are not counted.",
        "A write that does not pass the Gateway is not in the log, so the true risk may be higher.",
    ]
    return Section("stale", "Stale risk", sentences, facts, names)
