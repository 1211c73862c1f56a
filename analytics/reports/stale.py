"""Stale risk: hits whose result is older than a change of a table that they read.

The only source is the log. A change that does not pass the Gateway is not in it.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Meta

from accounts.access.scopes import Scope
from accounts.assessments import has_connection
from accounts.models import Fqdn, Membership, PersonalAccessToken, Revision
from accounts.models.history import RevisionKind
from accounts.tenants.config import read_config
from analytics.models import DayRollup
from analytics.reports.reading import LogReader, ReportHead, ReportQuery, Window
from analytics.reports.sql import (
    MAX_SPELLED,
    learned_views_sql,
    spellings_sql,
    stale_findings_sql,
    stale_totals_sql,
)
from logs.table_names import read_table_names
from rules.ruleset import read_ruleset
from rules.tables.logged import LoggedNames
from rules.tables.warehouse import WarehouseTables
from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp

if TYPE_CHECKING:
    from django.db.models import QuerySet


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


StepId: TypeAlias = Literal[
    "address", "warehouse", "token", "first-request", "first-rule", "first-hit", "people"
]


class SetupStep(JsonStruct):
    id: StepId
    done: bool
    at: Annotated[Timestamp | None, Meta(description="When it was done, where that is known.")] = None


class Setup(JsonStruct):
    """What a new tenant still needs, in the order of the first hour."""

    steps: list[SetupStep]
    ready: Annotated[
        bool, Meta(description="True when every step but `people` is done: a tenant may have one user.")
    ]
    spellings: Annotated[
        list[TableSpellings],
        Meta(
            description="Tables that the log of the last 28 days names in several ways, at most 100. "
            "Conditions of rules compare the text."
        ),
    ]
    spellings_complete: Annotated[
        bool, Meta(description="False if the log has more names of tables, or more spellings, than are kept.")
    ]


def read_setup(tenant_id: UUID) -> Setup:
    """Return the steps of a live tenant.

    ``address``: it has an FQDN. ``warehouse``: its configuration has the connection. ``token``: a personal
    access token in force lets a Gateway read its configuration and announce its log, alone or with all other
    tenants. ``first-request`` and ``first-hit``: a day of its log has one.
    ``first-rule``: a rule is enabled. ``people``: it has two members or more.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    config = read_config(tenant_id)
    rules = read_ruleset(tenant_id).rules
    revisions = Revision.objects.filter(tenant_id=tenant_id)
    days = DayRollup.objects.filter(tenant_id=tenant_id)
    tokens = PersonalAccessToken.objects.in_force().filter(
        tenants__overlap=[str(tenant_id), "*"], scopes__contains=[Scope.CONFIG_READ, Scope.LOGS_NOTIFY]
    )
    members = Membership.objects.filter(tenant_id=tenant_id, ends_at__isnull=True)
    steps = [
        _step(
            "address",
            _first(Fqdn.objects.filter(tenant_id=tenant_id, released_at__isnull=True), "claimed_at"),
        ),
        _step(
            "warehouse",
            _first(revisions.filter(kind=RevisionKind.CONFIG, document__has_key="warehouse"), "changed_at"),
            done=has_connection(config.document),
        ),
        _step(
            "token",
            _first(tokens, "created_at"),
        ),
        SetupStep(id="first-request", done=days.exists()),
        _step(
            "first-rule",
            _first(revisions.filter(kind=RevisionKind.RULES, document__rules__0__isnull=False), "changed_at"),
            done=any(rule["enabled"] for rule in rules),
        ),
        SetupStep(id="first-hit", done=days.filter(hits__gt=0).exists()),
        SetupStep(id="people", done=members.count() > 1),
    ]
    names = read_table_names(tenant_id)
    tables = replace(WarehouseTables.of(config.document), logged=tuple(names.counts))
    found = LoggedNames(tables).spelled_otherwise()
    return Setup(
        steps=steps,
        ready=all(step.done for step in steps if step.id != "people"),
        spellings=[TableSpellings(table=name, spellings=texts) for name, texts in found[:MAX_SPELLED]],
        spellings_complete=names.complete and len(found) <= MAX_SPELLED,
    )


def _step(name: StepId, at: dt.datetime | None, *, done: bool | None = None) -> SetupStep:
    """Return a step that was done ``at`` a time. ``done`` says whether it still is."""
    is_done = at is not None if done is None else done
    return SetupStep(id=name, done=is_done, at=format_timestamp(at) if is_done and at is not None else None)


def _first(rows: QuerySet[Any], time: str) -> dt.datetime | None:
    """Return the earliest time of the rows; ``time`` names the field."""
    return rows.order_by(time).values_list(time, flat=True).first()
