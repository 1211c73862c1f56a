"""Incidents for staff: a fallen hit rate, a stopped log, an unreadable object, a failed build, a domain.

Other incidents are in the logs: blocked statements, a mistake in the rules that was restored, stale results
that were served, and a leak.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.core.files.base import ContentFile
from msgspec.structs import replace

from accounts.billing.domains import register_domain
from accounts.models import Domain, Tenant
from analytics.demo.history import write_history
from analytics.demo.profile import Mistake
from analytics.demo.statements import Persona
from analytics.demo.writer import LogPlan
from analytics.models import Build
from logs.layout import day_start_ms, logs_prefix
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from datetime import date
    from uuid import UUID

    from analytics.demo.reading import Demo
    from tenantadmin.lib.objectstore import ObjectStore

#: Days by which the third tenant's log stops early.
_LATE_DAYS: Final = 3
_ENTRIES_PER_DAY: Final = 100
#: Days at the end of its log under a rule that sends every read past the cache.
_FALLEN_DAYS: Final = 5
_DAY_MINUTES: Final = 1440
_PAST_THE_CACHE: Final = {
    "id": "try-without-cache",
    "name": "Try without the cache",
    "action": "bypass",
    "conditions": {"isReadOnly": True},
}
#: The object of a Gateway that was killed during a write.
_CUT: Final = b'{"logId": "5f0c", "timestamp": 17'
_ERROR: Final = "StoreError: the object store did not answer within 60 s"


def ensure_incidents(
    store: ObjectStore, demo: Demo, *, account_id: UUID, first_day: date, last_day: date
) -> None:
    """Create the missing incidents.

    Raises:
        StoreError: the store failed.
    """
    owner, stranger = demo.people.owner, demo.people.stranger
    tenant = Tenant.objects.get(name=stranger.tenant, account__owners__email=stranger.email)
    day = last_day - timedelta(days=_LATE_DAYS)
    days = max((day - first_day).days + 1, 1)
    published = max(days - _FALLEN_DAYS, 0) * _DAY_MINUTES
    mistake = Mistake(published=published, restored=days * _DAY_MINUTES, rule=_PAST_THE_CACHE)
    profile = demo.profiles[0]
    # Dashboards repeat their requests, so that a small log has a hit rate that can fall.
    dashboards = tuple(consumer for consumer in profile.consumers if consumer.persona is Persona.DASHBOARD)
    plan = LogPlan(
        replace(profile, mistake=mistake, leak=None, advice=(), consumers=dashboards),
        tenant.pk,
        first_day=day - timedelta(days=days - 1),
        days=days,
        entries=_ENTRIES_PER_DAY * days,
    )
    for _ in write_history(store, plan, actor=stranger.email):
        pass
    hour = f"{logs_prefix(tenant.pk)}{day:%Y/%m/%d}/12/"
    store.save(f"{hour}{day_start_ms(day) + 43_200_000}-cut.json", ContentFile(_CUT))
    # The day has no log. The build of a day with a log would run again.
    Build.objects.get_or_create(
        tenant_id=tenant.pk,
        period=(day + timedelta(days=1)).isoformat(),
        state=Build.State.FAILED,
        defaults={"error": _ERROR, "finished_at": now()},
    )
    if not Domain.objects.filter(account_id=account_id, name=owner.domain).exists():
        register_domain(account_id=account_id, name=owner.domain, actor=owner.email)
