"""How the log of the last 28 days spells the names of tables."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from logs.compaction.build import TableNames
from logs.models import Partition
from tenantadmin.lib.core.timestamps import days_before, now

_DAYS: Final = 28


def read_table_names(tenant_id: UUID) -> TableNames:
    """Return the most frequent names in the last 28 days of a tenant's log."""
    days = Partition.objects.filter(tenant_id=tenant_id, day__gt=days_before(now().date(), _DAYS))
    return TableNames.merge(days.order_by().values_list("table_names", flat=True))


def spelled_tables(tenant_id: UUID) -> tuple[str, ...]:
    """Return these names alone. ``settings.LOGGED_TABLES`` names this function."""
    return tuple(read_table_names(tenant_id).counts)
