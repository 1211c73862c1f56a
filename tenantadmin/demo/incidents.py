"""What staff find in the demo: a log that stopped, an object that nobody can read, a failed build, a domain.

The other incidents are in the logs themselves: blocked statements, a mistake in the rules that was restored,
results that were served although a write made them stale, and a leak.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.core.files.base import ContentFile

from accounts.billing.domains import register_domain
from accounts.models import Domain, Tenant
from analytics.models import Build
from logs.layout import day_start_ms, logs_prefix
from tenantadmin.core.timestamps import now
from tenantadmin.demo.generate import SEED
from tenantadmin.demo.writer import LogPlan, write_logs

if TYPE_CHECKING:
    from datetime import date
    from uuid import UUID

    from tenantadmin.demo.reading import Demo
    from tenantadmin.objectstore import ObjectStore

#: The log of the stranger's tenant ends so many days before the others.
_LATE_DAYS: Final = 3
_ENTRIES: Final = 40
#: What a Gateway leaves if it is killed while it writes.
_CUT: Final = b'{"logId": "5f0c", "timestamp": 17'
_ERROR: Final = "StoreError: the object store did not answer within 60 s"


def ensure_incidents(store: ObjectStore, demo: Demo, *, account_id: UUID, last_day: date) -> None:
    """Make the incidents. Those that exist do not change.

    Raises:
        StoreError: the store failed.
    """
    owner, stranger = demo.people.owner, demo.people.stranger
    tenant = Tenant.objects.get(name=stranger.tenant, account__owners__email=stranger.email)
    day = last_day - timedelta(days=_LATE_DAYS)
    plan = LogPlan(demo.profiles[0], tenant.pk, first_day=day, days=1, seed=SEED, entries=_ENTRIES)
    for _ in write_logs(store, plan):
        pass
    hour = f"{logs_prefix(tenant.pk)}{day:%Y/%m/%d}/12/"
    store.save(f"{hour}{day_start_ms(day) + 43_200_000}-cut.json", ContentFile(_CUT))
    Build.objects.get_or_create(
        tenant_id=tenant.pk,
        period=day.isoformat(),
        state=Build.State.FAILED,
        defaults={"error": _ERROR, "finished_at": now()},
    )
    if not Domain.objects.filter(account_id=account_id, name=owner.domain).exists():
        register_domain(account_id=account_id, name=owner.domain, actor=owner.email)
