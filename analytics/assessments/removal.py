"""Remove the data of assessments that were deleted, or are old."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.apps import apps

from accounts.events import SYSTEM
from accounts.models import Tenant
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.lifecycle import delete_tenant
from analytics.models import Assessment
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import default_store

_LIFETIME: Final = timedelta(days=90)
#: Who read what of a log stays.
_KEPT: Final = frozenset({"logs.LogRead", "logs.QueryRun"})


def remove_data(tenant_id: UUID) -> None:
    """Remove the objects of a deleted assessment, and all rows about it. It may be done again.

    Raises:
        StoreError: the store failed.
    """
    store = default_store()
    for entry in list(store.list(f"{tenant_id}/")):
        store.delete(entry.key)
    for label in ("logs", "analytics"):
        for model in apps.get_app_config(label).get_models():
            names = {field.attname for field in model._meta.fields}
            if "tenant_id" in names and model._meta.label not in _KEPT and model is not Assessment:
                model._default_manager.filter(tenant_id=tenant_id).delete()
    # The last, so that a removal that was killed is done again.
    Assessment.objects.filter(pk=tenant_id).delete()


def remove_old_assessments() -> None:
    """Delete assessments that are older than 90 days, and remove data that a killed process left."""
    for tenant_id in Assessment.objects.filter(created_at__lt=now() - _LIFETIME).values_list("pk", flat=True):
        with suppress(TenantNotFound):
            delete_tenant(tenant_id=tenant_id, actor=SYSTEM)
    known = Tenant.objects.live().values("pk")
    for tenant_id in Assessment.objects.exclude(pk__in=known).values_list("pk", flat=True):
        remove_data(tenant_id)
