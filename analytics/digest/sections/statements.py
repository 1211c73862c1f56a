"""New heavy statements: at least 1 % of the warehouse time, and absent in the 28 days before."""

# Queries consist of constants, days and hashes.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.digest.facts import FactQuery, Name, NameKind, Section, Unit, percent_sql
from analytics.digest.periods import LOOK_BACK_DAYS
from logs.definitions import REQUEST, WAREHOUSE_TIME, hash_sql
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from analytics.digest.facts import Fact
    from analytics.digest.periods import DigestPeriod
    from analytics.digest.reading import DigestLog

#: In a log with fewer days before, every statement would be new.
_MIN_HISTORY_DAYS: Final = 7
_MOST: Final = 5


def statements_section(log: DigestLog, period: DigestPeriod) -> Section | None:
    """Return the new heavy statements, the heaviest first. None if the log is less than a week old."""
    if not any(day <= days_before(period.first, _MIN_HISTORY_DAYS) for day in log.days):
        return None
    before = period.before_sql(LOOK_BACK_DAYS)
    heavy = log.rows(
        f"""
        SELECT {hash_sql()} AS hash, standardizedSql AS statement
        FROM proxy_logs WHERE {period.sql} AND standardizedSql IS NOT NULL
        GROUP BY standardizedSql
        HAVING {WAREHOUSE_TIME} > 0
            AND 100 * {WAREHOUSE_TIME}
                >= (SELECT {WAREHOUSE_TIME} FROM proxy_logs WHERE {period.sql})
        ORDER BY {WAREHOUSE_TIME} DESC, hash"""
    )
    # At most a hundred are heavy. In one query, the engine might hold all statements of 28 days instead.
    texts = [row["statement"] for row in heavy] or [None]
    earlier = log.rows(
        f"""
        SELECT DISTINCT standardizedSql AS statement FROM proxy_logs
        WHERE {before} AND standardizedSql IN ({", ".join("?" * len(texts))})""",
        texts,
    )
    known = {row["statement"] for row in earlier}
    rows = [row for row in heavy if row["statement"] not in known][:_MOST]
    if not rows:
        return None
    sentences: list[str] = []
    facts: list[Fact] = []
    names: list[Name] = []
    for number, row in enumerate(rows, start=1):
        prefix = f"new-{number}"
        own = f"FROM proxy_logs WHERE {period.sql} AND {hash_sql()} = '{row['hash']}'"
        share = f"(SELECT {WAREHOUSE_TIME} FROM proxy_logs WHERE {period.sql})"
        facts += log.read_facts(
            [
                FactQuery(f"{prefix}-runs", Unit.COUNT, f"SELECT count(*) FILTER ({REQUEST}) {own}"),
                FactQuery(
                    f"{prefix}-time", Unit.SECONDS, f"SELECT round({WAREHOUSE_TIME} / 1000.0, 1) {own}"
                ),
                FactQuery(
                    f"{prefix}-share", Unit.PERCENT, f"SELECT {percent_sql(WAREHOUSE_TIME, share)} {own}"
                ),
            ]
        )
        names.append(
            Name(id=f"{prefix}-statement", kind=NameKind.STATEMENT, value=row["statement"], href=None)
        )
        sentences.append(
            f"A statement that is new in the log took {{{prefix}-time}} of the warehouse, {{{prefix}-share}} "
            f"of its time; requests: {{{prefix}-runs}}. {{{prefix}-statement}}"
        )
    return Section("new-statements", "New heavy statements", sentences, facts, names)
