"""What the Gateway did with a request: the name of each status, and what it means (docs/words.md). No I/O."""

from __future__ import annotations

from typing import Final

from logs.definitions import REQUEST

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
