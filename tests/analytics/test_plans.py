"""The plans of frequent queries on a filled database: they do not read the rows that are done."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pytest
from django.db import connection

from analytics.models import Build
from logs.models import LogSweep, Partition, PendingBuild, SupersededFile
from logs.pending import pending_days_of
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from django.db.models import QuerySet

pytestmark = pytest.mark.django_db

TENANT: Final = UUID("11111111-2222-4333-8444-555555555555")
_FILL: Final = (
    """INSERT INTO analytics_build (tenant_id, period, state, started_at, error)
    SELECT gen_random_uuid(), '2026-01-01', 'done', now() - n * interval '1 second', ''
    FROM generate_series(1, 20000) n""",
    """INSERT INTO logs_pendingbuild (tenant_id, day, mark, marked_at, due_at)
    SELECT gen_random_uuid(), '2026-01-01', gen_random_uuid(), now(), now() + n * interval '1 second'
    FROM generate_series(1, 20000) n""",
    """INSERT INTO logs_logsweep (tenant_id, listed_at)
    SELECT gen_random_uuid(), now() + n * interval '1 second' FROM generate_series(1, 20000) n""",
    """INSERT INTO logs_supersededfile (key, superseded_at)
    SELECT n::text, now() + n * interval '1 second' FROM generate_series(1, 20000) n""",
    """INSERT INTO logs_partition (tenant_id, day, listing_digest, build, file, rows, bytes, objects_read,
        duplicates, quarantined, built_at)
    SELECT gen_random_uuid(), '2026-01-01', '', '', '', 0, 0, 0, 0, 0, now()
    FROM generate_series(1, 20000)""",
)


@pytest.fixture
def _filled() -> None:
    with connection.cursor() as cursor:
        for statement in _FILL:
            cursor.execute(statement)
        for model in (Build, PendingBuild, LogSweep, SupersededFile, Partition):
            cursor.execute(f"ANALYZE {model._meta.db_table}")


def queries() -> dict[str, tuple[QuerySet[Any], str]]:
    """Return the frequent queries, each with the index that it must use."""
    return {
        "running builds": (
            Build.objects.filter(state=Build.State.RUNNING)
            .order_by()
            .distinct()
            .values_list("tenant_id", "period"),
            "build_running",
        ),
        "a running build": (
            Build.objects.filter(tenant_id=TENANT, period="2026-01-01", state=Build.State.RUNNING),
            "build_",
        ),
        "due builds": (PendingBuild.objects.filter(due_at__lte=now())[:500], "logs_pendingbuild_due_at"),
        "a pending day": (
            PendingBuild.objects.filter(tenant_id=TENANT, day="2026-01-01"),
            "pending_build_unique",
        ),
        "pending periods": (PendingBuild.objects.filter(tenant_id=TENANT, day=None), "pending_build_unique"),
        "days without a build": (pending_days_of(TENANT, "2026-01"), "pending_build_unique"),  # type: ignore[arg-type]
        "the next tenants of the sweep": (
            LogSweep.objects.filter(listed_at__lte=now() - timedelta(days=1))[:70],
            "logs_logsweep_listed_at",
        ),
        "superseded files": (
            SupersededFile.objects.filter(superseded_at__lt=now() - timedelta(days=1))[:1000],
            "logs_supersededfile_superseded_at",
        ),
    }


@pytest.mark.usefixtures("_filled")
def test_frequent_queries_read_an_index() -> None:
    plans = {name: (query.explain(), index) for name, (query, index) in queries().items()}
    assert not {
        name: plan for name, (plan, index) in plans.items() if index not in plan or "Seq Scan" in plan
    }
