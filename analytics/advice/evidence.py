"""SQL over ``proxy_logs`` that supports a proposal.

``days`` is the SQL condition that selects the days of the window.
"""

# The SQL has only constants, days and compiled conditions.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.replay.evidence import EvidenceQuery
from logs.definitions import BLOCKED, ERROR, HIT, REQUEST, WAREHOUSE_TIME, Statuses
from logs.quoting import quote_text
from rules.conditions import compile_sql

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def statements_evidence(days: str, conditions: Mapping[str, Any], *, where: str) -> EvidenceQuery:
    """Select the statements that match the conditions and ``where``, the most warehouse time first."""
    return EvidenceQuery(
        name="statements",
        sql=f"SELECT standardizedSql, count(*) FILTER ({REQUEST}) AS requests,"
        f" count(DISTINCT parameterValues) AS differentValues, count(*) FILTER ({HIT}) AS hits,"
        f" {WAREHOUSE_TIME} AS warehouseMs"
        f" FROM proxy_logs WHERE {days} AND {where} AND {compile_sql(conditions)}"
        " GROUP BY standardizedSql ORDER BY warehouseMs DESC NULLS LAST, standardizedSql LIMIT 20",
    )


def changes_evidence(days: str, tables: Sequence[str]) -> EvidenceQuery:
    """Select the statements that changed one of the tables."""
    condition = compile_sql({"tables": {"containsAny": list(tables)}})
    return EvidenceQuery(
        name="changes",
        sql=f"SELECT standardizedSql, count(*) AS runs FROM proxy_logs WHERE {days}"
        f" AND (isDataChange OR isDDL) AND {condition}"
        f" AND {Statuses(*BLOCKED, *ERROR).not_of('cacheStatus')}"
        " GROUP BY standardizedSql ORDER BY runs DESC, standardizedSql LIMIT 20",
    )


def rule_evidence(days: str, rule_id: str) -> EvidenceQuery:
    """Count the log entries that a rule decided, by cache status."""
    return EvidenceQuery(
        name="statuses",
        sql="SELECT cacheStatus, missReason, count(*) AS entries,"
        f" {WAREHOUSE_TIME} AS warehouseMs"
        f" FROM proxy_logs WHERE {days} AND matchedRule = {quote_text(rule_id)}"
        " GROUP BY cacheStatus, missReason ORDER BY entries DESC, cacheStatus, missReason",
    )
