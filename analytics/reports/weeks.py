"""The last week of tenants."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from msgspec import Meta

from accounts.access.scopes import Scope
from accounts.cursors import cut_page, invalid_cursor, read_cursor, write_cursor
from accounts.models import Tenant
from accounts.revisions import read_last_changes
from analytics.models import TenantHealth
from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp

if TYPE_CHECKING:
    from accounts.access.principal import Principal


class TenantWeek(JsonStruct):
    """What happened in a tenant in the seven days up to the last day of its log."""

    tenant_id: UUID
    last_day: Annotated[dt.date | None, Meta(description="The last day of the log; null without a log.")]
    requests: Count
    hit_rate: Annotated[float | None, Meta(ge=0, le=1, description="The hits of all requests.")]
    warehouse_ms: Annotated[int, Meta(ge=0, description="How long the warehouse worked.")]
    changed_at: Annotated[
        Timestamp | None, Meta(description="When the rules or the configuration were last changed.")
    ] = None


def read_health(tenants: Iterable[UUID]) -> Mapping[UUID, TenantHealth]:
    """Return the health of each tenant, in one query. That of a tenant without a log has no figures."""
    wanted = list(tenants)
    found = TenantHealth.objects.in_bulk(wanted)
    return {tenant: found.get(tenant) or TenantHealth(tenant_id=tenant) for tenant in wanted}


def list_weeks(
    principal: Principal, *, limit: int, cursor: str | None
) -> tuple[list[TenantWeek], str | None]:
    """Return a page of the tenants on which the caller has ``analytics:numbers``, and the cursor of the next.

    Raises:
        BadRequest: the cursor is not from this list.
    """
    rows = Tenant.objects.live().with_scope(Scope.ANALYTICS_NUMBERS, principal.on_tenants).order_by("pk")
    if cursor is not None:
        rows = rows.filter(pk__gt=_read_id(cursor))
    page, more = cut_page(rows.only("pk"), limit)
    changes = read_last_changes(row.pk for row in page)
    weeks = [
        TenantWeek(
            tenant_id=tenant,
            last_day=health.last_day,
            requests=health.requests_7,
            hit_rate=health.rate_7,
            warehouse_ms=health.warehouse_ms_7,
            changed_at=None if (at := changes.get(tenant)) is None else format_timestamp(at),
        )
        for tenant, health in read_health(row.pk for row in page).items()
    ]
    return weeks, write_cursor([str(page[-1].pk)]) if more else None


def _read_id(cursor: str) -> UUID:
    (text,) = read_cursor(cursor, (str,))
    try:
        return UUID(text)
    except ValueError:
        raise invalid_cursor() from None
