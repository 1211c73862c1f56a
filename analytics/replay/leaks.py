"""Find results that depend on the user and that several users get. Section "Leaks" (docs/replay.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from analytics.reports.per_user import reads_tables_sql
from logs.definitions import SHARED
from rules.dialects.text import names_no_schema_sql
from rules.dialects.words import word_sql
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.replay.outcome import Outcome
    from rules.tables.warehouse import WarehouseTables


_MAX_WORDS: Final = 10


class ReplayLeak(JsonStruct):
    """A rule under which several users get the same result of a statement that depends on the user."""

    rule_id: str
    rule_name: str
    statements: Count
    users: Annotated[Count, Meta(description="The most users who get the results of one statement.")]
    words: Annotated[
        tuple[str, ...],
        Meta(description="The words on which these results depend, such as `CURRENT_USER`, at most 10."),
    ] = ()


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
            WITH worded AS (SELECT statement, {word_sql("text")} AS word FROM statement), personal AS (
                SELECT statement, table_list, word
                FROM (SELECT DISTINCT statement, table_list FROM {outcome.table} WHERE is_cached)
                JOIN worded USING (statement)
                JOIN (SELECT table_list, text AS tables FROM table_list) AS table_list USING (table_list)
                WHERE word IS NOT NULL OR {differs}
            ), shared AS (
                SELECT rule, statement, any_value(word) AS word, list(DISTINCT user_name) AS users
                FROM {outcome.table} AS outcome JOIN personal USING (statement, table_list)
                JOIN request USING (n)
                WHERE outcome.is_counted AND is_cached AND outcome.identity IS NOT NULL
                    AND {SHARED.of("outcome.status")} AND user_name IS NOT NULL
                GROUP BY rule, outcome.restart, vary, outcome.identity, statement
                HAVING count(DISTINCT user_name) > 1
            )
            SELECT rule, statement, any_value(word) AS word,
                len(list_distinct(flatten(list(users)))) AS users
            FROM shared GROUP BY rule, statement
            """  # noqa: S608
        )
    return ReplayLeaks(
        ended=_leaks_without(connection, current, subject), begun=_leaks_without(connection, subject, current)
    )


def shares_without_schema(connection: DuckDBPyConnection, outcome: Outcome) -> bool:
    """Return True if a rule shares results of a table that is named without a schema."""
    shared = [index for index, rule in enumerate(outcome.decisions.rules) if rule.is_shared]
    found = connection.execute(
        f"""
        SELECT 1 FROM table_list WHERE {names_no_schema_sql("text")} AND table_list IN (
            SELECT table_list FROM {outcome.table}
            WHERE is_counted AND is_cached AND list_contains($shared::BIGINT[], rule)
        ) LIMIT 1
        """,  # noqa: S608
        {"shared": shared},
    ).fetchone()
    return found is not None


def _leaks_without(connection: DuckDBPyConnection, of: Outcome, without: Outcome) -> list[ReplayLeak]:
    """Return the leaks of statements that leak under one outcome and not under the other."""
    rows = connection.execute(
        f"""
        SELECT rule, count(*), max(users),
            coalesce(list_sort(list(DISTINCT word) FILTER (word IS NOT NULL))[:{_MAX_WORDS}], [])
        FROM leak_of_{of.table}
        WHERE statement NOT IN (SELECT statement FROM leak_of_{without.table})
        GROUP BY rule ORDER BY rule
        """  # noqa: S608
    ).fetchall()
    rules = of.decisions.rules
    return [
        ReplayLeak(
            rule_id=rules[index].id,
            rule_name=rules[index].name,
            statements=statements,
            users=users,
            words=tuple(words),
        )
        for index, statements, users, words in rows
    ]
