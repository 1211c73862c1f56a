"""Stale risk: hits whose result is older than a change of a table that they read.

The only source is the log. A change that does not pass the Gateway is not in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from analytics.reports.reading import ReportHead, ReportQuery
from analytics.reports.stale_sql import (
    learned_views_sql,
    spellings_sql,
    stale_findings_sql,
    stale_totals_sql,
)
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from analytics.reports.reading import LogReader, Window
    from rules.tables.warehouse import WarehouseTables


class StaleRule(JsonStruct):
    rule_id: str | None
    hits: Count
    at_risk: Count


class StaleFinding(JsonStruct):
    """Hits that were older than a change of a table. A hit that reads several tables counts in each."""

    rule_id: str | None
    table: str
    changed_by: Annotated[
        str | None, Meta(description="The rule that the changing statement matched; null for none.")
    ]
    hits: Count
    last_at: Annotated[int, Meta(description="The last such hit, in epoch milliseconds.")]
    example: Annotated[str | None, Meta(description="The `logId` of the last such hit.")]
    longest_ms: Annotated[Count, Meta(description="The longest time from a change to such a hit.")]


class TableSpellings(JsonStruct):
    table: str
    spellings: list[str]


class LearnedView(JsonStruct):
    view: str
    tables: list[str]
    is_configured: Annotated[bool, Meta(description="True if `warehouse.views` has it.")]


class StaleReport(ReportHead):
    """Hits whose result may have been stale. Numbers cover hits with a known age."""

    hits: Annotated[Count, Meta(description="All hits with a known age.")]
    at_risk: Annotated[
        Count, Meta(description="Hits that read a table which changed after their result was made.")
    ]
    rules: list[StaleRule]
    findings: list[StaleFinding]
    caveats: Annotated[
        list[str], Meta(description="What the log cannot show: docs/insights.md says it in words.")
    ]
    spellings: Annotated[
        list[TableSpellings],
        Meta(description="Tables that the log names in several ways, at most 100. They count as one table."),
    ]
    views: Annotated[
        list[LearnedView],
        Meta(
            description="Views that the log creates, with what they read. Those of `warehouse.views` count "
            "as they are configured."
        ),
    ]


def stale_report(log: LogReader, *, window: Window, warehouse: WarehouseTables) -> StaleReport:
    """Return hits that may have been stale, by rule, table and the rule that the changing statement matched.

    Raises:
        ApiError: a query failed.
    """
    statements = {
        name: query(first=window.first, last=window.last, warehouse=warehouse)
        for name, query in (
            ("findings", stale_findings_sql),
            ("rules", stale_totals_sql),
            ("spellings", spellings_sql),
            ("views", learned_views_sql),
        )
    }
    read: dict[str, list[str]] = {}
    for row in log.rows(statements["views"]):
        read.setdefault(row["view"], []).append(row["name"])
    configured = {view for view, _ in warehouse.view_pairs}
    rules = msgspec.convert(log.rows(statements["rules"]), list[StaleRule])
    return StaleReport(
        from_=window.first,
        to=window.last,
        hits=sum(rule.hits for rule in rules),
        at_risk=sum(rule.at_risk for rule in rules),
        rules=[rule for rule in rules if rule.at_risk],
        findings=msgspec.convert(log.rows(statements["findings"]), list[StaleFinding]),
        caveats=[
            "writes-past-the-gateway-are-invisible",
            "changes-inside-the-warehouse-are-invisible",
            "hits-without-an-age-are-left-out",
        ],
        spellings=msgspec.convert(log.rows(statements["spellings"]), list[TableSpellings]),
        views=[
            LearnedView(view=view, tables=tables, is_configured=view in configured)
            for view, tables in read.items()
        ],
        queries=[ReportQuery(name=name, sql=sql) for name, sql in statements.items()],
    )
