"""Write SQL over the log from what staff choose: days, user, status, rule, table. It only computes."""

# The statement is for the reader to see and to change; values are quoted.

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from logs.quoting import quote_text

if TYPE_CHECKING:
    import datetime as dt

#: What is quoted or a comment, and so names no column.
_NOT_CODE: Final = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)


class Show(StrEnum):
    """The rows of the answer."""

    ENTRIES = "entries"
    STATEMENTS = "statements"
    USERS = "users"
    HOURS = "hours"
    STATUSES = "statuses"


#: Labels for people.
SHOWN: Final = (
    (Show.ENTRIES.value, "Requests, newest first"),
    (Show.STATEMENTS.value, "By statement"),
    (Show.USERS.value, "By user"),
    (Show.HOURS.value, "By hour"),
    (Show.STATUSES.value, "By status"),
)
_COUNTS: Final = """count(*) AS requests,
  count(*) FILTER (cacheStatus = 'HIT') AS hits,
  count(*) FILTER (cacheStatus = 'MISS') AS misses,
  sum(warehouseExecutionTimeMs) AS warehouseMs"""
_SELECTED: Final = {
    Show.ENTRIES: """epoch_ms(timestamp) AS atUtc, day, logId, userName, cacheStatus, missReason, matchedRule,
  warehouseExecutionTimeMs, standardizedSql""",
    Show.STATEMENTS: f"standardizedSql,\n  {_COUNTS}",
    Show.USERS: f"userName,\n  {_COUNTS}",
    Show.HOURS: f"date_trunc('hour', epoch_ms(timestamp)) AS hourUtc,\n  {_COUNTS}",
    Show.STATUSES: f"cacheStatus, missReason,\n  {_COUNTS}",
}
_ENDS: Final = {
    Show.ENTRIES: "ORDER BY timestamp DESC\nLIMIT 200",
    Show.HOURS: "GROUP BY ALL\nORDER BY hourUtc",
}
_MOST_FIRST: Final = "GROUP BY ALL\nORDER BY requests DESC\nLIMIT 200"


@dataclass(frozen=True, slots=True)
class Facets:
    """What to look at. An empty text means: any. ``statement`` is the MD5 of one, in lower-case hex."""

    first: dt.date
    last: dt.date
    user: str = ""
    status: str = ""
    rule: str = ""
    table: str = ""
    statement: str = ""
    show: Show = Show.ENTRIES


def write_sql(facets: Facets) -> str:
    """Return the statement for what was chosen."""
    conditions = [f"day BETWEEN '{facets.first}' AND '{facets.last}'"]
    chosen = (("userName", facets.user), ("cacheStatus", facets.status), ("matchedRule", facets.rule))
    conditions += [f"{column} = {quote_text(value)}" for column, value in chosen if value]
    if facets.table:
        # The column holds a JSON array of names.
        conditions.append(f"contains(tables, {quote_text(json.dumps(facets.table, ensure_ascii=False))})")
    if facets.statement:
        conditions.append(f"md5(standardizedSql) = {quote_text(facets.statement)}")
    where = "\n  AND ".join(conditions)
    end = _ENDS.get(facets.show, _MOST_FIRST)
    return f"SELECT {_SELECTED[facets.show]}\nFROM proxy_logs\nWHERE {where}\n{end}"


def names_day(statement: str) -> bool:
    """Return True if a statement names the column ``day``. Without it the whole history is read."""
    return re.search(r"\bday\b", _NOT_CODE.sub(" ", statement), re.IGNORECASE) is not None
