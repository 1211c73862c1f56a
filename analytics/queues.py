"""The rows of this app that wait for a worker. `analytics.tasks.start_jobs` sends their tasks."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db.models import Q

from analytics.models import Alert, Mining, ReplayRun, TenantHealth
from tenantadmin.lib.jobs.queue import Queue

#: Tenants whose digests are looked at. A row is due again after the next day or week with entries, or a day.
DIGESTS: Final = Queue(
    name="digests",
    model=TenantHealth,
    lease=timedelta(minutes=5),
    longest=timedelta(hours=2),
    farthest=timedelta(days=1),
)
#: Alerts of live tenants. All of a tenant are evaluated by one task.
ALERTS: Final = Queue(
    name="alerts",
    model=Alert,
    waiting=Q(enabled=True, tenant__isnull=False, tenant__deleted_at=None),
    lease=timedelta(minutes=10),
    longest=timedelta(hours=1),
    places=20,
)
#: A replay or a search that runs stays due, so that one whose worker was killed is noticed.
REPLAYS: Final = Queue(
    name="replays",
    model=ReplayRun,
    waiting=Q(state__in=ReplayRun.UNDER_WAY),
    lease=timedelta(seconds=30),
    longest=timedelta(seconds=30),
)
MININGS: Final = Queue(
    name="searches",
    model=Mining,
    waiting=Q(state__in=Mining.UNDER_WAY),
    lease=timedelta(seconds=30),
    longest=timedelta(seconds=30),
)
