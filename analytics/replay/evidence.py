"""SQL over ``proxy_logs`` that comes with the result of a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logs.definitions import MEASURED_MISS
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from datetime import date


class EvidenceQuery(JsonStruct):
    name: str
    sql: str


def replay_evidence(first_day: date, last_day: date) -> list[EvidenceQuery]:
    """Return SQL over ``proxy_logs`` that reads the logged statuses and the mean times of statements."""
    days = f"day BETWEEN '{first_day}' AND '{last_day}'"
    return [
        EvidenceQuery(
            name="logged-statuses",
            sql="SELECT matchedRule, cacheStatus, count(*) AS entries FROM proxy_logs"  # noqa: S608
            f" WHERE {days} GROUP BY ALL ORDER BY ALL",
        ),
        EvidenceQuery(
            name="statement-means",
            sql="SELECT standardizedSql, floor(avg(warehouseExecutionTimeMs)) AS meanMs FROM proxy_logs"  # noqa: S608
            f" WHERE {MEASURED_MISS} AND {days} GROUP BY ALL ORDER BY ALL",
        ),
    ]
