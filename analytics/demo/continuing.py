"""Continue the logs of a demo that runs for more than a day, with the rules that its users publish."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.core.files.base import ContentFile
from django.db.models import Max

from accounts.models import Revision, Tenant
from accounts.models.history import RevisionKind
from analytics.demo.generate import generate
from analytics.demo.history import store_markers
from analytics.demo.profile import PROFILE_DAYS, Publication
from analytics.demo.writer import pack_hour
from logs.layout import day_start_ms
from logs.pending import mark_days
from rules.models import Marker
from tenantadmin.lib.core.timestamps import from_epoch_ms

if TYPE_CHECKING:
    from datetime import date
    from uuid import UUID

    from analytics.demo.profile import Profile
    from tenantadmin.lib.objectstore import ObjectStore

#: A day is the last one of a simulated week, which has the rhythm of a week and fills the cache.
_WEEK: Final = 7


def write_later_day(
    store: ObjectStore, profile: Profile, *, tenant_id: UUID, day: date, share: float = 1.0
) -> int:
    """Write one more day of a tenant's log, with its markers. Return the number of entries.

    Nothing is written for a deleted tenant. Another run for the day writes the same again.

    Raises:
        StoreError: the store failed.
    """
    if not Tenant.objects.live().filter(pk=tenant_id).exists():
        return 0
    week = list(
        generate(
            profile,
            tenant_id=str(tenant_id),
            first_day=day - timedelta(days=_WEEK - 1),
            days=_WEEK,
            entries=round(profile.entries * share * _WEEK / PROFILE_DAYS),
            publications=_read_publications(tenant_id),
        )
    )
    hours = week[-24:]
    for hour in hours:
        for key, content in pack_hour(hour, tenant_id=tenant_id):
            store.save(key, ContentFile(content))
    begins_at = from_epoch_ms(day_start_ms(day))
    earlier = Marker.objects.filter(tenant=tenant_id, number__isnull=False, invalidated_at__lt=begins_at)
    highest = earlier.order_by().values_list("target_rule_id").annotate(Max("number"))
    store_markers(
        tenant_id,
        (marker for hour in hours for marker in hour.markers),
        numbers={rule_id: number + 1 for rule_id, number in highest},
    )
    mark_days(tenant=tenant_id, days=[day])
    return sum(len(hour.entries) for hour in hours)


def _read_publications(tenant_id: UUID) -> tuple[Publication, ...]:
    revisions = Revision.objects.filter(kind=RevisionKind.RULES, tenant_id=tenant_id, document__isnull=False)
    return tuple(
        Publication(it.seq, int(it.changed_at.timestamp() * 1000), tuple(it.document["rules"]))
        for it in revisions.order_by("seq")
        if it.document
    )
