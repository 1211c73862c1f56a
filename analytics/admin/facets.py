"""Write SQL over the log from filters: days, user, status, rule, table."""

# The statement is shown to the reader, who may change it. Values are quoted.

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from logs.definitions import HIT, REQUEST, STORED_MISS, WAREHOUSE_TIME, hash_sql
from logs.quoting import quote_text

if TYPE_CHECKING:
    import datetime as dt

#: Texts and comments, which cannot name a column.
_NOT_CODE: Final = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)


class Grouping(StrEnum):
    """What one row of the result stands for: a log entry, or a group of them."""

    ENTRIES = "entries"
    STATEMENTS = "statements"
    USERS = "users"
    HOURS = "hours"
    STATUSES = "statuses"


#: Labels for people.
SHOWN: Final = (
    (Grouping.ENTRIES.value, "Log entries, newest first"),
    (Grouping.STATEMENTS.value, "By statement"),
    (Grouping.USERS.value, "By user"),
    (Grouping.HOURS.value, "By hour"),
    (Grouping.STATUSES.value, "By status"),
)
_COUNTS: Final = f"""count(*) FILTER ({REQUEST}) AS requests,
  count(*) FILTER ({HIT}) AS hits,
  count(*) FILTER ({STORED_MISS}) AS misses,
  count(*) FILTER (NOT {REQUEST}) AS others,
  {WAREHOUSE_TIME} AS warehouseMs"""
_SELECTED: Final = {
    Grouping.ENTRIES: """epoch_ms(timestamp) AS atUtc, day, logId, userName, cacheStatus, missReason,
  matchedRule, warehouseExecutionTimeMs, standardizedSql""",
    Grouping.STATEMENTS: f"standardizedSql,\n  {_COUNTS}",
    Grouping.USERS: f"userName,\n  {_COUNTS}",
    Grouping.HOURS: f"date_trunc('hour', epoch_ms(timestamp)) AS hourUtc,\n  {_COUNTS}",
    Grouping.STATUSES: f"""cacheStatus, missReason,
  count(*) AS entries,
  {WAREHOUSE_TIME} AS warehouseMs""",
}
_ENDS: Final = {
    Grouping.ENTRIES: "ORDER BY timestamp DESC\nLIMIT 200",
    Grouping.HOURS: "GROUP BY ALL\nORDER BY hourUtc",
}
_MOST_FIRST: Final = "GROUP BY ALL\nORDER BY count(*) DESC\nLIMIT 200"


@dataclass(frozen=True, slots=True)
class Facets:
    """Filters of the log. Empty means any. ``statement`` is the MD5 of a statement, in lower-case hex."""

    first: dt.date
    last: dt.date
    user: str = ""
    status: str = ""
    rule: str = ""
    table: str = ""
    statement: str = ""
    show: Grouping = Grouping.ENTRIES


def write_sql(facets: Facets) -> str:
    """Return the SQL for these filters."""
    conditions = [f"day BETWEEN '{facets.first}' AND '{facets.last}'"]
    chosen = (("userName", facets.user), ("cacheStatus", facets.status), ("matchedRule", facets.rule))
    conditions += [f"{column} = {quote_text(value)}" for column, value in chosen if value]
    if facets.table:
        # The column holds a JSON array of names.
        conditions.append(f"contains(tables, {quote_text(json.dumps(facets.table, ensure_ascii=False))})")
    if facets.statement:
        conditions.append(f"{hash_sql()} = {quote_text(facets.statement)}")
    where = "\n  AND ".join(conditions)
    end = _ENDS.get(facets.show, _MOST_FIRST)
    return f"SELECT {_SELECTED[facets.show]}\nFROM proxy_logs\nWHERE {where}\n{end}"


def names_day(statement: str) -> bool:
    """Return True if a statement names the column ``day``. Otherwise it reads the whole history."""
    return re.search(r"\bday\b", _NOT_CODE.sub(" ", statement), re.IGNORECASE) is not None
