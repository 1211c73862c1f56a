"""Savings on the admin site: the first figure of the overview."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from django.core.cache import cache

from accounts.models import TenantConfig
from logs.layout import day_start_ms
from tests.admin.logs import put_log, to
from tests.admin.reading import text_of

if TYPE_CHECKING:
    from django.test import Client

    from accounts.models import Tenant

DAY = date(2026, 3, 1)
PRICE = {"from": "2026-01-01", "currency": "USD", "perHour": "3.00", "billing": "suspending"}


@pytest.fixture(autouse=True)
def _no_kept_documents() -> None:
    cache.clear()


def put(tenant: Tenant) -> None:
    start = day_start_ms(DAY)
    common = {"standardizedSql": "SELECT 1", "matchedRule": "orders"}
    put_log(
        tenant,
        {**common, "timestamp": start, "cacheStatus": "MISS", "warehouseExecutionTimeMs": 60_000},
        {**common, "timestamp": start + 3_600_000, "cacheStatus": "HIT"},
        {**common, "timestamp": start + 60_000, "cacheStatus": "HIT"},
    )


def set_price(tenant: Tenant, **changed: Any) -> None:
    config = TenantConfig.objects.get(pk=tenant.pk)
    config.document = {**config.document, "warehouse": {"pricing": [{**PRICE, **changed}]}}
    config.save()


def test_the_first_figure_of_the_overview(staff: Client, tenant: Tenant, settings: Any) -> None:
    put(tenant)
    page = to("tenant", tenant)
    assert 'hx-get="?part=savings&amp;days=28"' in staff.get(page).content.decode()
    part = {"part": "savings", "days": "7"}
    assert text_of(staff.get(page, part).content.decode()) == (
        "Saved on the bill 7 min "
        "less billed time, 53.8% of the bill without the cache; "
        "set a price to see money Warehouse time saved 2 min "
        "of statements that did not run; billed only where the warehouse would have slept"
    )
    set_price(tenant)
    assert text_of(staff.get(page, part).content.decode()) == (
        "Saved on the bill 0.35 USD 7 min less billed time, 53.8% of the bill without the cache "
        "Warehouse time saved 2 min "
        "of statements that did not run; billed only where the warehouse would have slept"
    )
    settings.REPLAY_MAX_ROWS = 1
    assert "These days have 3 log entries; at most 1 can be read." in staff.get(page, part).content.decode()
