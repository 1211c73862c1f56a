"""Savings on the admin site: the page, and the first figure of the overview."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.core.cache import cache

from accounts.models import TenantConfig
from analytics.admin.pages.savings import savings_of
from logs.layout import day_start_ms
from logs.models import QueryRun
from tests.admin.logs import put_log, to
from tests.admin.reading import text_of

if TYPE_CHECKING:
    from django.test import Client

    from accounts.models import Tenant

DAY = date(2026, 3, 1)
DAYS = {"first": DAY.isoformat(), "last": DAY.isoformat()}
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


def test_the_page_shows_both_times_and_why_they_differ(staff: Client, tenant: Tenant) -> None:
    put(tenant)
    set_price(tenant)
    shown = text_of(staff.get(to("tenant-savings", tenant), DAYS).content.decode())
    bill = "7 min less billed time, 53.8% of the bill without the cache"
    assert f"Saved on the bill 0.35 USD {bill}" in shown
    assert (
        "Warehouse time saved 2 min "
        "of statements that did not run; billed only where the warehouse would have slept" in shown
    )
    assert (
        "The cache spared 66.7% of the time that statements would have run without it. "
        "Billed is all the time that the warehouse is awake: from its first statement until it suspends. "
        "So a hit saves money only when the warehouse would have been asleep without it. The price is "
        in shown
    )
    assert "count with the mean time of their statement" in shown
    assert "orders 2 2 min 7 min 0.35" in shown
    assert "Billed time saved Saved on the bill" in shown
    assert "keeps the warehouse awake until it suspends (5 min), so a rule can save more billed time" in shown
    assert "are not counted" not in shown
    assert QueryRun.objects.get().email == "admin@example.org"


def test_a_rule_that_costs_says_so(staff: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tenant)
    set_price(tenant)

    def read(*args: Any, **given: Any) -> dict[str, Any]:
        document = savings_of(*args, **given)
        (rule,) = document["rules"]
        rule |= {"marginalMs": -60_000, "money": "-0.05"}
        return document

    monkeypatch.setattr("analytics.admin.pages.savings.savings_of", read)
    shown = text_of(staff.get(to("tenant-savings", tenant), DAYS).content.decode())
    assert "orders 2 2 min costs 1 min more costs 0.05 USD more" in shown


def test_the_page_opens_with_the_last_days(staff: Client, tenant: Tenant, settings: Any) -> None:
    put(tenant)
    page = to("tenant-savings", tenant)
    opened = staff.get(page).content.decode()
    # The page loads the figures, so that a large log does not hold up the choice of other days.
    assert not QueryRun.objects.exists()
    assert 'hx-get="?part=figures" hx-trigger="load"' in opened
    assert f'value="{DAY - timedelta(27)}"' in opened
    shown = text_of(staff.get(page, {"part": "figures"}).content.decode())
    assert shown.startswith(
        "2026-02-02 to 2026-03-01, UTC; no requests on 27 of these days Saved on the bill"
    )
    # The overview has computed the same.
    assert staff.get(to("tenant", tenant), {"part": "savings", "days": "28"}).status_code == 200
    assert QueryRun.objects.count() == 1
    settings.REPLAY_MAX_ROWS = 1
    refused = staff.get(page, {"part": "figures"})
    assert refused.status_code == 200
    assert "These days have 3 log entries; at most 1 can be read. " in refused.content.decode()


def test_a_warehouse_that_is_always_on_saves_no_money(staff: Client, tenant: Tenant) -> None:
    put(tenant)
    set_price(tenant, billing="always-on")
    shown = text_of(staff.get(to("tenant-savings", tenant), DAYS).content.decode())
    assert "The warehouse is always on, so that saves capacity and no money." in shown
    assert "0% of the bill; the warehouse is always on" in shown
    # The chart shows what was spared, and that is no time awake.
    assert "How long statements ran. The bill is the same with and without the cache" in shown
    assert "Day Warehouse time Without the cache 2026-03-01 1 min 3 min" in shown
    assert "Hours awake" not in shown


def test_wrong_days(staff: Client, tenant: Tenant) -> None:
    page = to("tenant-savings", tenant)
    answer = staff.get(page, {**DAYS, "first": "2024-01-01"})
    assert answer.status_code == 400
    assert "Savings cover at most 366 days, and these are 791." in answer.content.decode()
    assert staff.get(page, {**DAYS, "last": "x"}).status_code == 400


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
