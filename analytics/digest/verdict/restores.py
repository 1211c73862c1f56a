"""Restores of earlier rules, which may end a fall of the hit rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accounts.models import Revision
from accounts.models.history import RevisionAction, RevisionKind
from logs.pending import last_pending_days
from tenantadmin.lib.core.formats import ago
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from analytics.models import TenantHealth


def find_restore(history: Sequence[Revision], cause: Revision | None) -> Revision | None:
    """Return the revision that restored one from before the cause of a fall, or None."""
    if cause is None:
        return None
    restores = (it for it in history if it.seq > cause.seq and it.action == RevisionAction.RESTORE)
    return next((it for it in restores if (it.restored_from or 0) < cause.seq), None)


def tell_restore(restore: Revision, logged: dt.date | None, *, at: dt.datetime) -> str:
    """Say which revision restored which, and if the log ends before, with the day ``logged``."""
    # Without the comma, "revision 1 4 minutes ago" reads as 14.
    passed = ago(restore.changed_at, now=at)
    text = f"revision {restore.seq} restored revision {restore.restored_from}, {passed}"
    is_untried = logged is None or logged < restore.changed_at.date()
    return f"{text}; no requests since" if is_untried else text


def tell_restores(health: Iterable[TenantHealth], *, since: dt.datetime) -> Mapping[UUID, str]:
    """Tell the last restore of the rules of tenants, for those with one, in at most two queries."""
    last_days = {row.pk: row.last_day for row in health}
    restores = Revision.objects.filter(
        kind=RevisionKind.RULES,
        tenant_id__in=last_days,
        action=RevisionAction.RESTORE,
        changed_at__gte=since,
    )
    last = {it.tenant_id: it for it in restores.defer("document").order_by("changed_at") if it.tenant_id}
    pending = last_pending_days(last)
    return {
        tenant: tell_restore(restore, pending.get(tenant, last_days[tenant]), at=now())
        for tenant, restore in last.items()
    }
