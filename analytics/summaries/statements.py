"""The statements of a few days, with what the cache did for each, from the rollups of the days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from analytics.summaries.engine import shared_engine
from analytics.summaries.ranges import find_range
from analytics.summaries.rollup_schema import LATEST_ORDER, NOT_CACHED_SUM, STATEMENTS
from analytics.summaries.rollups import MAIN_RULES, Rollups
from analytics.summaries.store import table_uris
from logs.columns import CACHE_STATUSES
from logs.definitions import NOT_CACHED, STORED_MISS
from rules.conditions.patterns import fold_case, fold_case_sql
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, show_time

if TYPE_CHECKING:
    from uuid import UUID

    from tenantadmin.lib.objectstore import ObjectStore

StatementOrder: TypeAlias = Literal["warehouse", "requests", "response", "hit-rate"]
#: The value of the filter ``rule`` for what no rule decided.
NO_RULE: Final = "none"
_ORDERS: Final[dict[StatementOrder, str]] = {
    "warehouse": "warehouse_ms DESC NULLS LAST",
    "requests": "hits + stored_misses + not_cached DESC, requests DESC",
    "response": "response_ms DESC",
    "hit-rate": "hits / nullif(hits + stored_misses + not_cached, 0) NULLS LAST, requests DESC",
}
# Values are variables, because a value in the text could name a table of `Rollups`.
_PART, _RULE, _MAIN, _STATUS = (
    f"getvariable('{name}')::VARCHAR" for name in ("part", "rule", "main_rule", "status")
)
_QUERY: Final = f"""
    SELECT *, count(*) OVER () AS total FROM (
        SELECT replace(statement::VARCHAR, '-', '') AS hash,
            max(latest_day) AS day,
            sum(entries)::BIGINT AS requests,
            sum(hits)::BIGINT AS hits,
            sum(misses)::BIGINT AS stored_misses,
            sum({NOT_CACHED_SUM})::BIGINT AS not_cached,
            round(sum(time_mean::DOUBLE * entries) / sum(entries))::BIGINT AS response_ms,
            sum(warehouse_sum)::BIGINT AS warehouse_ms,
            arg_max_null(latest_rule, {LATEST_ORDER}) AS rule,
            arg_max_null(latest_status, {LATEST_ORDER}) AS status,
            arg_max_null(latest_size, {LATEST_ORDER}) AS size,
            min(first_timestamp) AS first_at,
            max(last_timestamp) AS last_at
        FROM <statements>
        WHERE {_PART} IS NULL OR contains({fold_case_sql("sql")}, {_PART})
        GROUP BY statement
    ) LEFT JOIN (
        SELECT replace(statement::VARCHAR, '-', '') AS hash, main_rule FROM {MAIN_RULES}
    ) USING (hash)
    WHERE ({_STATUS} IS NULL OR status = {_STATUS})
        AND ({_RULE} IS NULL OR coalesce(rule, '{NO_RULE}') = {_RULE})
        AND ({_MAIN} IS NULL OR coalesce(main_rule, '{NO_RULE}') = {_MAIN})
    ORDER BY {{order}}, hash LIMIT {{limit}}
"""  # noqa: S608  # only constants


class StatementActivity(JsonStruct):
    """One statement. ``matchedRule``, ``cacheStatus`` and ``responseSize`` are of the latest request."""

    query_hash: Annotated[str, Meta(description="MD5 of the standardized SQL, lower-case hex.")]
    statement: str
    last_day: Annotated[date, Meta(description="The last day (UTC) with a request.")]
    requests: Annotated[Count, Meta(description="Log entries of any status.")]
    hits: Count
    stored_misses: Annotated[Count, Meta(description=STORED_MISS.text)]
    not_cached: Annotated[Count, Meta(description=f"{NOT_CACHED.text}.")]
    average_response_time: Count
    warehouse_execution_time_ms: Annotated[
        int | None, Meta(description="Null if no request reached the warehouse.")
    ]
    matched_rule: str | None
    main_rule: Annotated[
        str | None,
        Meta(
            description="The rule that gave most hits, or decided most requests if there are no hits. "
            "Null if no rule did."
        ),
    ]
    cache_status: Annotated[
        Annotated[str, one_of(CACHE_STATUSES)] | None,
        Meta(description="A value outside the twelve statuses is shown as it was logged."),
    ]
    response_size: int
    first_request_time: Timestamp | None
    last_request_time: Timestamp | None


class StatementList(JsonStruct):
    """The first statements of a period in the order that was asked for."""

    from_: date
    to: date
    total: Annotated[Count, Meta(description="Statements that fit the filters, shown or not.")]
    statements: list[StatementActivity]


@dataclass(frozen=True, slots=True)
class StatementFilter:
    """The statements to list. A condition that is None does not apply."""

    #: A part of the text; case is ignored.
    statement: str | None = None
    #: The id of the rule of the latest request, or `NO_RULE`.
    rule: str | None = None
    #: The id of the rule of `MAIN_RULES`, or `NO_RULE`.
    main_rule: str | None = None
    status: str | None = None

    def values(self) -> dict[str, str | None]:
        """Return the values of the variables that the query reads."""
        part = None if self.statement is None else fold_case(self.statement)
        return {"part": part, "rule": self.rule, "main_rule": self.main_rule, "status": self.status}


def list_statements(
    store: ObjectStore,
    *,
    tenant: UUID,
    first: date,
    last: date,
    matching: StatementFilter,
    order: StatementOrder,
    limit: int,
) -> StatementList:
    """Return the first ``limit`` statements of the days from ``first`` to ``last``.

    Raises:
        StoreError, duckdb.Error: the rollups cannot be read.
    """
    days = find_range(tenant=tenant, first=first, last=last).days
    rows, texts = [], {}
    if days:
        files = {day: table_uris(store, tables) for day, tables in days.items()}
        with shared_engine(store) as engine:
            for name, value in matching.values().items():
                engine.connection.execute(f"SET VARIABLE {name} = ?", [value])
            rollups = Rollups(engine.connection, list(files.values()))
            rows = rollups.rows(_QUERY.format(order=_ORDERS[order], limit=limit))
            used = [files[day][STATEMENTS] for day in sorted({row["day"] for row in rows})]
            texts = rollups.statement_texts(used, [row["hash"] for row in rows])
    return StatementList(
        from_=first,
        to=last,
        total=rows[0]["total"] if rows else 0,
        statements=[
            StatementActivity(
                query_hash=row["hash"],
                statement=texts[row["hash"]],
                last_day=row["day"],
                requests=row["requests"],
                hits=row["hits"],
                stored_misses=row["stored_misses"],
                not_cached=row["not_cached"],
                average_response_time=row["response_ms"],
                warehouse_execution_time_ms=row["warehouse_ms"],
                matched_rule=row["rule"],
                main_rule=row["main_rule"],
                cache_status=row["status"],
                response_size=row["size"],
                first_request_time=show_time(row["first_at"]),
                last_request_time=show_time(row["last_at"]),
            )
            for row in rows
        ],
    )
