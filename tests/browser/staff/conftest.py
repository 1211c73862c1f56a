"""A tenant with trouble, for tasks of staff."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from django.core.cache import cache

from accounts.models import Fqdn
from analytics.models import DayRollup, TenantHealth
from logs.models import Partition, QuarantinedEntry
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.browser.staff.tasks import RULE

if TYPE_CHECKING:
    from accounts.models import Tenant


@pytest.fixture(autouse=True)
def _dashboard(service: str, settings: Any) -> None:
    settings.DASHBOARD_URL = f"{service}/dashboard/"


@pytest.fixture
def world(service: str) -> factories.World:
    cache.clear()
    return factories.make_world()


@pytest.fixture
def tenant(world: factories.World) -> Tenant:
    """A tenant whose hit rate fell after a change of its rules, and with an entry in quarantine."""
    tenant = world.tenant
    for ttl in (3600, 60):
        rule = {**RULE, "ttlSeconds": ttl}
        write_ruleset(tenant_id=tenant.pk, document={"rules": [rule]}, actor="owner@example.org")
    Fqdn.objects.create(name="db.acme.example", tenant_id=tenant.pk)
    today = now().date()
    for age in range(10):
        DayRollup.objects.create(
            tenant_id=tenant.pk,
            day=today - dt.timedelta(days=age),
            build="b",
            version=1,
            files={},
            bytes=1,
            hits=900 - 80 * (10 - age),
            misses=100 + 80 * (10 - age),
            warehouse_ms=1000,
        )
    TenantHealth.objects.create(
        tenant_id=tenant.pk,
        last_day=today,
        rate_7=0.5,
        rate_28=0.7,
        drop=0.2,
        requests_7=7000,
        quarantined=1,
    )
    Partition.objects.create(
        tenant_id=tenant.pk,
        day=today,
        listing_digest="d",
        build="b",
        file="",
        rows=0,
        bytes=1,
        objects_read=1,
        duplicates=0,
        quarantined=1,
    )
    QuarantinedEntry.objects.create(tenant_id=tenant.pk, day=today, key="k", position=0, reason="not JSON")
    return tenant
