"""Leaks: a cached result that depends on the user and was served to several users."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from accounts.models.history import RevisionKind
from analytics.reports.reading import LogReader, ReportHead, ReportQuery, Window
from analytics.reports.sql import leak_findings_sql, leak_totals_sql
from rules.dialects.text import WITHOUT_SCHEMA
from tenantadmin.lib.core.formats import count
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from rules.tables.warehouse import WarehouseTables


LeakGrade: TypeAlias = Literal["certain", "likely"]

#: The most users that a finding names.
_MAX_USERS: Final = 10


class LeakFinding(JsonStruct):
    """A statement whose cached results several users got."""

    grade: Annotated[
        LeakGrade,
        Meta(
            description="`certain`: it calls a function of the user or session, or reads a table of "
            "`warehouse.perUserTables`. `likely`: it has a word that may be such a function or a column, "
            "such as `USER`, reads a system catalogue, or calls a non-deterministic function."
        ),
    ]
    rule_id: str | None
    statement: str | None
    word: Annotated[
        str | None,
        Meta(
            description="The word on which its result depends by who asks or by the session, such as "
            "`CURRENT_USER`; null if there is none."
        ),
    ]
    keys: Annotated[Count, Meta(description="Cache keys that several users shared.")]
    served: Count
    users: Annotated[list[str], Meta(description="The first 10 in order.")]
    user_count: Count


class LeaksReport(ReportHead):
    keys: Annotated[Count, Meta(description="All cache keys that were served.")]
    shared_keys: Annotated[Count, Meta(description="Those served to several users, of any statement.")]
    findings: list[LeakFinding]
    caveats: Annotated[
        list[str],
        Meta(
            description="`tables-without-schema`: several users shared results of a table that its statement "
            "names without a schema. In sessions with different search paths, it is another table."
        ),
    ]
    text: Annotated[str, Meta(description="What was found, in a sentence without a full stop.")]
    closed_by: Annotated[
        int | None,
        Meta(description="The revision of the rules since which none of these findings can happen again."),
    ] = None
    closed_by_config: Annotated[
        int | None,
        Meta(description="In place of `closedBy`: the configuration's revision that switched the cache off."),
    ] = None

    @property
    def closing(self) -> Closing | None:
        """The revision that closed the findings."""
        return Closing.of(self.closed_by, self.closed_by_config)


@dataclass(frozen=True, slots=True)
class Closing:
    """The revision of the rules or the configuration since which no leak can happen again."""

    kind: RevisionKind
    seq: int

    @classmethod
    def of(cls, rules: int | None, config: int | None) -> Closing | None:
        """Return the revision of the rules or of the configuration, or None if both are None."""
        if rules is not None:
            return cls(RevisionKind.RULES, rules)
        return None if config is None else cls(RevisionKind.CONFIG, config)

    def __str__(self) -> str:
        of = " of the configuration" if self.kind == RevisionKind.CONFIG else ""
        return f"revision {self.seq}{of}"

    @property
    def rules(self) -> int | None:
        return self.seq if self.kind == RevisionKind.RULES else None

    @property
    def config(self) -> int | None:
        return self.seq if self.kind == RevisionKind.CONFIG else None


@dataclass(frozen=True, slots=True)
class ClosedLeaks:
    """Statements that leaked, and the revision since which none of them can leak again."""

    closing: Closing
    statements: Collection[str | None]


def leaks_report(
    log: LogReader, *, window: Window, warehouse: WarehouseTables, closed: ClosedLeaks | None
) -> LeaksReport:
    """Return statements whose cached results depend on the user and were served to several users.

    ``certain``: the statement calls a function whose result depends on the user, or reads a table whose name
    is or may be one of ``perUserTables``. ``likely``: it has a word that may be such a function, or calls a
    non-deterministic one. Sharing alone is normal for a cache: of ``keys``, ``sharedKeys`` are.
    ``closed`` is what the digests of these days know to be closed. A finding that they do not know is open.

    Raises:
        ApiError: a query failed.
    """
    first, last = window.first, window.last
    statements = {
        "findings": leak_findings_sql(first=first, last=last, warehouse=warehouse),
        "totals": leak_totals_sql(first=first, last=last),
    }
    rows, (totals,) = (log.rows(sql) for sql in statements.values())
    findings = [
        msgspec.convert(
            {**row, "users": row["users"][:_MAX_USERS], "userCount": len(row["users"])}, LeakFinding
        )
        for row in rows
    ]
    is_closed = closed is not None and all(finding.statement in closed.statements for finding in findings)
    closing = closed.closing if closed and findings and is_closed else None
    return LeaksReport(
        from_=window.first,
        to=window.last,
        keys=totals["keys"],
        shared_keys=totals["sharedKeys"],
        findings=findings,
        caveats=[WITHOUT_SCHEMA] if totals["withoutSchema"] else [],
        text=_describe(findings),
        queries=[ReportQuery(name=name, sql=sql) for name, sql in statements.items()],
        closed_by=closing.rules if closing else None,
        closed_by_config=closing.config if closing else None,
    )


def _describe(findings: Sequence[LeakFinding]) -> str:
    """Return what was found, in a sentence: certain findings first, then likely ones."""
    said = []
    for grade, one, several in (("certain", "depends", "depend"), ("likely", "may depend", "may depend")):
        found = [finding for finding in findings if finding.grade == grade]
        if found:
            users = max(finding.user_count for finding in found)
            said.append(
                f"{count(len(found), 'statement')} {one if len(found) == 1 else several} on the user and "
                f"{'was served to' if len(found) == 1 else 'were served to up to'} {count(users, 'user')}, "
                f"{count(sum(finding.served for finding in found), 'time')}"
            )
    return "; ".join(said) or "No result that depends on the user was served to several users"
