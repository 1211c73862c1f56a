"""What the numbers count: requests, hits, misses, times, statements, statuses. Names: docs/words.md. No I/O.

Each definition is here once, for Python and for SQL over ``proxy_logs``. `tests/logs/test_definitions.py`
finds a second spelling.
"""

from __future__ import annotations

from hashlib import md5
from typing import Final, NamedTuple


class Statuses(tuple[str, ...]):
    """Values of ``cacheStatus`` that count as one thing. As text, it is the SQL condition for them."""

    __slots__ = ()

    def __new__(cls, *names: str) -> Statuses:
        return super().__new__(cls, names)

    def __str__(self) -> str:
        return self.of("cacheStatus")

    def of(self, column: str) -> str:
        """Return the SQL condition that a column has one of these statuses."""
        return f"{column} IN {self._list}" if len(self) > 1 else f"{column} = '{self[0]}'"

    def not_of(self, column: str) -> str:
        """Return the SQL condition that a column has another status. It is null for null."""
        return f"{column} NOT IN {self._list}" if len(self) > 1 else f"{column} <> '{self[0]}'"

    @property
    def others(self) -> str:
        """The SQL condition for all other entries, also for those without a status."""
        return f"({self}) IS NOT TRUE" if len(self) > 1 else f"cacheStatus IS DISTINCT FROM '{self[0]}'"

    @property
    def text(self) -> str:
        """The names in a sentence: ``MISS, BYPASS and PASSTHROUGH``."""
        return " and ".join(filter(None, (", ".join(self[:-1]), self[-1])))

    @property
    def _list(self) -> str:
        return "(" + ", ".join(f"'{name}'" for name in self) + ")"


class Above(NamedTuple):
    """The values of a column that count: those above a limit. As text, it is the SQL condition for them."""

    column: str
    limit: int

    def __str__(self) -> str:
        return f"{self.column} > {self.limit}"


#: The parts of all requests. An entry is in one of them at most.
HIT: Final = Statuses("HIT")

STORED_MISS: Final = Statuses("MISS")

BYPASSED: Final = Statuses("BYPASS")

PASSED: Final = Statuses("PASSTHROUGH")

#: Requests, wherever they are counted: hits and misses. ``cacheMisses`` of the contract are all misses.
NOT_CACHED: Final = Statuses(*BYPASSED, *PASSED)

MISS: Final = Statuses(*STORED_MISS, *NOT_CACHED)

REQUEST: Final = Statuses(*HIT, *MISS)

#: What counts as no request, although rules decide it.
WAITED: Final = Statuses("HOLD")

BLOCKED: Final = Statuses("BLOCKED")

FAILED: Final = Statuses("ERROR")

NOT_RECORDED: Final = Statuses("INVALIDATION_ERROR")

#: What the Gateway refused to run.
REFUSED: Final = Statuses(*BLOCKED, *NOT_RECORDED)

#: Failures, as alerts and digests count them.
ERROR: Final = Statuses(*FAILED, *NOT_RECORDED)

#: What a rule that caches answered from the cache, or stored there.
CACHED: Final = Statuses(*HIT, *STORED_MISS)

#: What got a stored result, or stored it: such results can be shared.
SHARED: Final = Statuses(*CACHED, *WAITED)

#: What cost the warehouse nothing.
SPARED: Final = Statuses(*HIT, *WAITED)

#: What got a result.
ANSWERED: Final = Statuses(*REQUEST, *WAITED)

#: What the warehouse ran.
EXECUTED: Final = Statuses(*MISS, *FAILED)

#: What rules decide.
DECIDED: Final = Statuses(*REQUEST, *BLOCKED, *WAITED, *ERROR)

#: A result that was stored: its entry has the key under which it is found.
STORED: Final = f"{STORED_MISS} AND cacheKey IS NOT NULL"

#: A response time of 0 was not measured, and a size of -1 or 0 is of no result.
TIMED: Final = Above("responseTimeMs", 0)

SIZED: Final = Above("responseSize", 0)

#: The warehouse time of entries, null without one.
WAREHOUSE_TIME: Final = "sum(warehouseExecutionTimeMs)"

#: Whether the time in the warehouse is known.
MEASURED: Final = "warehouseExecutionTimeMs >= 0"

#: The executions that the mean time of a statement is made of.
MEASURED_MISS: Final = f"{MISS} AND {MEASURED}"

#: When the execution of an entry ended, in epoch ms: then its result is stored, or its change is seen.
ENDED_AT: Final = "timestamp + greatest(coalesce(warehouseExecutionTimeMs, 0), 0)"

#: The hour of the day (UTC) of an entry, also before 1970.
HOUR: Final = "(timestamp % 86400000 + 86400000) % 86400000 // 3600000"

#: The ``operationType`` of what the warehouse's own cache of results answered, in a history that a warehouse
#: wrote itself. A Gateway never logs it. It neither wakes the warehouse nor takes its time.
OWN_CACHE: Final = "RESULT_CACHE"

ANSWERED_BY_OWN_CACHE: Final = f"operationType IS NOT DISTINCT FROM '{OWN_CACHE}'"

#: The conditions that the dashboard writes SQL with.
PAGE_DEFINITIONS: Final = {
    "requests": str(REQUEST),
    "hits": str(HIT),
    "storedMisses": str(STORED_MISS),
    "warehouseTime": WAREHOUSE_TIME,
}


def hash_sql(column: str = "standardizedSql") -> str:
    """Return SQL for the identity of a statement: `hash_statement` of its text."""
    return f"md5({column})"


def hash_statement(statement: str) -> str:
    """Return the identity of a statement: the MD5 of its standardized SQL, in lower-case hex."""
    return digest_statement(statement.encode()).hex()


def digest_statement(statement: bytes | memoryview) -> bytes:
    """Return the identity of a statement in UTF-8, as bytes."""
    return md5(statement, usedforsecurity=False).digest()


#: Name and meaning of the twelve values of ``cacheStatus``, in the contract's order. The dashboard's page
#: has them as JSON.
STATUSES: Final[dict[str, tuple[str, str]]] = {
    "HIT": ("Hit", "The result came from the cache. The warehouse did nothing."),
    "MISS": (
        "Miss",
        (
            "A rule caches this, but no valid result was stored. "
            "The warehouse ran it, and its result was stored."
        ),
    ),
    "BYPASS": ("Bypassed", "A rule matched and did not use the cache. The warehouse ran it."),
    "PASSTHROUGH": ("Passed through", "No rule matched. The warehouse ran it, and nothing was stored."),
    "SPOOFED": ("Gateway's answer", "The Gateway knew the answer itself, without cache or warehouse."),
    "TELEMETRY": ("Telemetry", "The client sent a report about itself, and no statement."),
    "ERROR": ("Failed", "The warehouse answered with an error."),
    "INVALIDATION_ERROR": (
        "Not recorded",
        "Refused, because the results that it makes stale could not be marked.",
    ),
    "AUTH_ERROR": ("Token refused", "The token of the request was not valid."),
    "EXECUTOR": ("Progress", "The client asked about a statement that was running."),
    "HOLD": ("Waited", "The same statement was already running. This request waited for its result."),
    "BLOCKED": ("Blocked", "A rule refuses this statement. It did not reach the warehouse."),
}

#: What the rows of ``proxy_logs`` are.
ROWS_MEANING: Final = (
    f"One row for each log entry. Entries with {REQUEST} are requests; "
    "the others waited, failed, were refused, report progress or were answered by the Gateway itself."
)
