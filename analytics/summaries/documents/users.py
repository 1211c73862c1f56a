"""The all-users summary over a tenant's whole history. Contract: "Summary records"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from analytics.summaries.numbers import mean
from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp

if TYPE_CHECKING:
    from datetime import datetime

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


class UserRecord(JsonStruct):
    """One user of the whole history."""

    user_id: str
    unique_queries: Count
    cache_hits: Count
    total_hits: Count
    average_response_time: Count
    min_response_time: Count
    max_response_time: Count


class UsersSummary(JsonStruct):
    """All users of the whole history."""

    tenant_id: UUID
    generated_at: Timestamp
    total_users: Count
    users: list[UserRecord]


def users_document(rollups: Rollups, *, tenant: UUID, generated_at: datetime) -> UsersSummary:
    """Return a record for each user with a log entry, from the ``rollups`` of all years."""
    users = [
        UserRecord(
            user_id=row["user_name"],
            unique_queries=row["queries"],
            cache_hits=row["hits"],
            total_hits=row["total"],
            average_response_time=mean(row["time_sum"], row["time_count"]),
            min_response_time=row["time_min"],
            max_response_time=row["time_max"],
        )
        for row in rollups.rows(_USERS)
    ]
    return UsersSummary(
        tenant_id=tenant,
        generated_at=format_timestamp(generated_at),
        total_users=len(users),
        users=users,
    )
