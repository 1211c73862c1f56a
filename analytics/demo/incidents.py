"""What staff find in the demo: a hit rate that fell, a log that stopped, an object that nobody can read, a
failed build, a domain.

The other incidents are in the logs themselves: blocked statements, a mistake in the rules that was restored,
results that were served although a write made them stale, and a leak.
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

#: The log of the stranger's tenant ends so many days before the others.
_LATE_DAYS: Final = 3
_ENTRIES_PER_DAY: Final = 100
#: Its last days were under a rule that sends every read past the cache, which nobody has removed.
_FALLEN_DAYS: Final = 5
_DAY_MINUTES: Final = 1440
_PAST_THE_CACHE: Final = {
    "id": "try-without-cache",
    "name": "Try without the cache",
    "action": "bypass",
    "conditions": {"isReadOnly": True},
}
#: What a Gateway leaves if it is killed while it writes.
_CUT: Final = b'{"logId": "5f0c", "timestamp": 17'
_ERROR: Final = "StoreError: the object store did not answer within 60 s"


def ensure_incidents(
    store: ObjectStore, demo: Demo, *, account_id: UUID, first_day: date, last_day: date
) -> None:
    """Make the incidents. Those that exist do not change.

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
    # Dashboards ask for the same results again, so that a small log has a hit rate that can fall.
    boards = tuple(one for one in profile.consumers if one.persona is Persona.DASHBOARD)
    plan = LogPlan(
        replace(profile, mistake=mistake, advice=(), consumers=boards),
        tenant.pk,
        first_day=day - timedelta(days=days - 1),
        days=days,
        entries=_ENTRIES_PER_DAY * days,
    )
    for _ in write_history(store, plan, actor=stranger.email):
        pass
    hour = f"{logs_prefix(tenant.pk)}{day:%Y/%m/%d}/12/"
    store.save(f"{hour}{day_start_ms(day) + 43_200_000}-cut.json", ContentFile(_CUT))
    # The build of a day that has a log would be done again.
    Build.objects.get_or_create(
        tenant_id=tenant.pk,
        period=(day + timedelta(days=1)).isoformat(),
        state=Build.State.FAILED,
        defaults={"error": _ERROR, "finished_at": now()},
    )
    if not Domain.objects.filter(account_id=account_id, name=owner.domain).exists():
        register_domain(account_id=account_id, name=owner.domain, actor=owner.email)
