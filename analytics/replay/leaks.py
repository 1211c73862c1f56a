"""Find results that depend on the user and that several users get. Section "Leaks" (docs/replay.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from analytics.reports.per_user import is_per_user_sql, reads_tables_sql
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.replay.outcome import Outcome
    from rules.tables.warehouse import WarehouseTables


class ReplayLeak(JsonStruct):
    """A rule under which several users get the same result of a statement that depends on the user."""

    rule_id: str
    rule_name: str
    statements: Count
    users: Annotated[Count, Meta(description="The most users who get the results of one statement.")]


class ReplayLeaks(JsonStruct):
    """Statements that leak under one of two rulesets only, by rule."""

    ended: Annotated[list[ReplayLeak], Meta(description="They leak under the current ruleset.")]
    begun: Annotated[list[ReplayLeak], Meta(description="They leak under the replayed ruleset.")]


def compare_leaks(
    connection: DuckDBPyConnection, current: Outcome, subject: Outcome, *, warehouse: WarehouseTables
) -> ReplayLeaks:
    """Return the leaks that the replayed ruleset ends, and those that it begins."""
    differs = reads_tables_sql(warehouse.personal, warehouse)
    for outcome in (current, subject):
        connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE leak_of_{outcome.table} AS
            WITH personal AS (
                SELECT statement.statement, table_list.table_list
                FROM (SELECT DISTINCT statement, table_list FROM {outcome.table} WHERE is_cached)
                JOIN statement USING (statement)
                JOIN (SELECT table_list, text AS tables FROM table_list) AS table_list USING (table_list)
                WHERE {is_per_user_sql("statement.text")} OR {differs}
            ), shared AS (
                SELECT rule, statement, list(DISTINCT user_name) AS users
                FROM {outcome.table} AS outcome JOIN personal USING (statement, table_list)
                JOIN request USING (n)
                WHERE outcome.is_counted AND is_cached AND outcome.identity IS NOT NULL
                    AND outcome.status IN ('HIT', 'MISS', 'HOLD') AND user_name IS NOT NULL
                GROUP BY rule, outcome.restart, vary, outcome.identity, statement
                HAVING count(DISTINCT user_name) > 1
            )
            SELECT rule, statement, len(list_distinct(flatten(list(users)))) AS users
            FROM shared GROUP BY rule, statement
            """  # noqa: S608
        )
    return ReplayLeaks(
        ended=_leaks_without(connection, current, subject), begun=_leaks_without(connection, subject, current)
    )


def _leaks_without(connection: DuckDBPyConnection, of: Outcome, without: Outcome) -> list[ReplayLeak]:
    """Return the leaks of statements that leak under one outcome and not under the other."""
    rows = connection.execute(
        f"""
        SELECT rule, count(*), max(users) FROM leak_of_{of.table}
        WHERE statement NOT IN (SELECT statement FROM leak_of_{without.table})
        GROUP BY rule ORDER BY rule
        """  # noqa: S608
    ).fetchall()
    rules = of.decisions.rules
    return [
        ReplayLeak(rule_id=rules[index].id, rule_name=rules[index].name, statements=statements, users=users)
        for index, statements, users in rows
    ]
