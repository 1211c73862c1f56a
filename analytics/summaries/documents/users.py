"""The all-users summary over a tenant's whole history. Contract: "Summary records"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analytics.summaries.numbers import mean

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from analytics.summaries.rollups import Rollups

_USERS: Final = """
    WITH sums AS (
        SELECT user_name, sum(hits)::BIGINT AS hits, sum(total)::BIGINT AS total,
            coalesce(sum(time_sum), 0)::HUGEINT AS time_sum, sum(time_count)::BIGINT AS time_count,
            coalesce(min(time_min), 0) AS time_min, coalesce(max(time_max), 0) AS time_max
        FROM <user_activity> GROUP BY user_name
    ),
    statements AS (
        SELECT user_name, count(DISTINCT statement) AS queries FROM <user_statements> GROUP BY user_name
    )
    SELECT sums.*, coalesce(queries, 0) AS queries
    FROM sums LEFT JOIN statements USING (user_name) ORDER BY total DESC, user_name
"""


def users_document(rollups: Rollups, *, tenant: UUID, generated_at: datetime) -> dict[str, Any]:
    """Return a record for each user with a log entry, from the ``rollups`` of all years."""
    users = [
        {
            "userId": row["user_name"],
            "uniqueQueries": row["queries"],
            "cacheHits": row["hits"],
            "totalHits": row["total"],
            "averageResponseTime": mean(row["time_sum"], row["time_count"]),
            "minResponseTime": row["time_min"],
            "maxResponseTime": row["time_max"],
        }
        for row in rollups.rows(_USERS)
    ]
    return {
        "tenantId": str(tenant),
        "generatedAt": generated_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "totalUsers": len(users),
        "users": users,
    }
