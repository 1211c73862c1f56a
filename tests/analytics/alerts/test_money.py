"""Alerts about the bill of the month, its forecast, and what the cache saves in it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.core.cache import cache
from django.core.management import call_command

from analytics.jobs import alerts as evaluating
from analytics.jobs.alerts import evaluate_tenant
from analytics.models import Alert, DayRollup
from analytics.watch.alert_kinds import KINDS
from logs.layout import day_start_ms
from logs.models import PendingBuild
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics.alerts.support import make_alert, messages, read_number, reader
from tests.objects import save_entries

if TYPE_CHECKING:
    from tests.factories import World


pytestmark = pytest.mark.django_db

HOUR: Final = 3_600_000
MONEY: Final = ("bill", "bill-forecast", "savings-low")
#: An hour that a statement runs costs 3 USD.
PRICE: Final = {"from": "2026-01-01", "currency": "USD", "perHour": "3.00", "billing": "busy"}


@pytest.fixture(autouse=True)
def _no_kept_documents() -> None:
    cache.clear()


def day(text: str) -> dt.date:
    return dt.date.fromisoformat(f"2026-{text}")


def put_days(world: World, first: str, last: str, *, hours: float = 1) -> None:
    """Store days on each of which a statement ran for an hour, or for ``hours``, and had two hits."""
    at = day(first)
    while at <= day(last):
        ran: dict[str, Any] = {"cacheStatus": "MISS", "warehouseExecutionTimeMs": round(HOUR * hours)}
        entries = [ran, {"cacheStatus": "HIT"}, {"cacheStatus": "HIT"}]
        save_entries(
            world.tenant.pk,
            at,
            [
                {
                    "logId": f"{at} {number}",
                    "timestamp": day_start_ms(at),
                    "standardizedSql": str(hours),
                    **one,
                }
                for number, one in enumerate(entries)
            ],
            name=f"00/{hours}.json",
        )
        at += dt.timedelta(1)
    call_command("rebuild", tenant=world.tenant.pk)


def numbers(world: World, kinds: Sequence[str] = MONEY) -> list[tuple[float | None, float | None]]:
    """Return value and other part of a new alert of each kind."""
    Alert.objects.all().delete()
    for kind in kinds:
        make_alert(world, kind=kind, window=None, threshold=1_000_000)
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    found = {alert.kind: (alert.value, alert.before) for alert in Alert.objects.all()}
    return [found[kind] for kind in kinds]


def test_the_amounts_of_a_month_that_goes_on_as_before(world: World) -> None:
    factories.set_prices(world.tenant, PRICE)
    put_days(world, "02-20", "03-10")
    assert numbers(world) == [(30.0, None), (93.0, 30.0), (186.0, 60.0)]
    savings = reader(world).get(f"/tenants/{world.tenant.pk}/savings?from=2026-03-01&to=2026-03-10").json()
    assert savings["total"]["withCache"]["money"] == "30.00"
    texts = {one["kind"]: one["valueText"] for one in reader(world).get(path(world)).json()["alerts"]}
    assert texts["bill"] == "now 30.00 USD"
    assert texts["bill-forecast"] == "now 93.00 USD (30.00 USD so far)"
    assert texts["savings-low"].startswith("now 186.00 USD (60.00 USD so far); since ")


def path(world: World, *parts: object) -> str:
    return "/".join([f"/tenants/{world.tenant.pk}/alerts", *map(str, parts)])


@pytest.mark.parametrize(
    ("hours", "so_far", "whole"),
    # Half a day counts as a whole one; a day that has cost more than the others counts as it is.
    [(0.5, 28.5, 93.0), (5, 42.0, 105.0)],
)
def test_the_newest_day_may_be_under_way(world: World, hours: float, so_far: float, whole: float) -> None:
    factories.set_prices(world.tenant, PRICE)
    put_days(world, "02-20", "03-09")
    put_days(world, "03-10", "03-10", hours=hours)
    assert numbers(world, ["bill", "bill-forecast"]) == [(so_far, None), (whole, so_far)]


def test_each_day_has_the_price_in_force_on_it(world: World) -> None:
    dearer = {**PRICE, "from": "2026-03-06", "perHour": "6.00"}
    cheaper = {**PRICE, "from": "2026-03-21", "perHour": "1.00"}
    put_days(world, "02-20", "03-10")
    factories.set_prices(world.tenant, PRICE, dearer)
    assert numbers(world) == [(45.0, None), (171.0, 45.0), (342.0, 90.0)]
    # A price to come counts in a forecast.
    factories.set_prices(world.tenant, PRICE, dearer, cheaper)
    assert numbers(world, MONEY[:2]) == [(45.0, None), (116.0, 45.0)]


def test_an_always_on_warehouse_bills_whole_days_and_saves_nothing(world: World) -> None:
    factories.set_prices(world.tenant, {**PRICE, "billing": "always-on", "perHour": "1.00"})
    put_days(world, "02-20", "03-10")
    assert numbers(world) == [(240.0, None), (744.0, 240.0), (0.0, 0.0)]


def test_a_month_begins_with_its_first_day_in_the_log(world: World) -> None:
    factories.set_prices(world.tenant, PRICE)
    put_days(world, "02-20", "02-28")
    # At the end of a month, the forecast is the bill.
    assert numbers(world) == [(27.0, None), (27.0, 27.0), (54.0, 54.0)]
    alert = make_alert(world, kind="bill", window=None, threshold=25.0)
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    assert messages(alert) == [("started", "queued")]
    assert alert.deliveries.get().content["text"] == (
        "The bill of the month (UTC) is 27.00 USD so far (threshold: 25.00 USD)."
    )
    assert alert.deliveries.get().content["currency"] == "USD"
    put_days(world, "03-01", "03-01")
    Alert.objects.update(took_ms=0)
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    assert messages(alert) == [("started", "queued"), ("ended", "queued")]
    assert numbers(world) == [(3.0, None), (93.0, 3.0), (186.0, 6.0)]


@pytest.mark.parametrize(
    ("price", "first", "kind", "said"),
    [
        (None, "02-20", "bill", "no price of the warehouse is set"),
        (None, "02-20", "savings-low", "no price of the warehouse is set"),
        ("2026-04-01", "02-20", "bill", "no day of the month has a price"),
        ("2026-04-01", "02-20", "bill-forecast", "no day of the month has a price"),
        ("2026-01-01", "03-04", "bill-forecast", "the log has fewer than 7 days before the newest"),
        ("2026-01-01", None, "bill", "the log has too little to say it"),
    ],
)
def test_without_a_number_the_alert_says_why(
    world: World, price: str | None, first: str | None, kind: str, said: str
) -> None:
    factories.set_prices(world.tenant, *([{**PRICE, "from": price}] if price else []))
    if first:
        put_days(world, first, "03-10")
    assert numbers(world, [kind]) == [(None, None)]
    listed = reader(world).get(path(world)).json()
    (alert,) = listed["alerts"]
    assert (alert["state"], alert["value"], alert["valueText"]) == ("unknown", None, said)
    assert listed["currency"] == ("USD" if price else None)
    # It has a number as soon as there can be one.
    factories.set_prices(world.tenant, PRICE)
    put_days(world, "02-20", "03-10")
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    assert Alert.objects.get().value is not None
    assert reader(world).get(path(world)).json()["alerts"][0]["valueText"] != said


def test_nothing_is_read_again_while_days_and_prices_are_the_same(world: World, monkeypatch: Any) -> None:
    factories.set_prices(world.tenant, PRICE)
    put_days(world, "02-20", "03-10")
    assert None not in [value for value, _ in numbers(world)]
    with monkeypatch.context() as patch:
        patch.setattr(evaluating, "read_savings", lambda *_, **__: pytest.fail("it was read"))
        patch.setattr(evaluating, "forecast_month", lambda *_: pytest.fail("it was read"))
        evaluate_tenant(default_store(), tenant=world.tenant.pk)
        # Prices that change are read, but not while the alert rests, nor while a day is built.
        factories.set_prices(world.tenant, {**PRICE, "perHour": "6.00"})
        Alert.objects.update(took_ms=60_000)
        evaluate_tenant(default_store(), tenant=world.tenant.pk)
        Alert.objects.update(took_ms=0)
        marked_at = now() - dt.timedelta(minutes=11)
        PendingBuild.objects.create(tenant_id=world.tenant.pk, day=day("03-02"), marked_at=marked_at)
        evaluate_tenant(default_store(), tenant=world.tenant.pk)
        # What an earlier release kept of a day is not enough.
        PendingBuild.objects.all().delete()
        DayRollup.objects.filter(day=day("03-02")).update(version=1)
        evaluate_tenant(default_store(), tenant=world.tenant.pk)
    assert Alert.objects.get(kind="bill").value == 30.0
    call_command("rebuild", tenant=world.tenant.pk)
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    assert Alert.objects.get(kind="bill").value == 60.0


def test_low_savings_fire_below_the_threshold_and_end_above_it(world: World) -> None:
    quiet = {"from": "00:00", "to": "23:59"}
    alert = make_alert(world, kind="savings-low", window=None, threshold=100.0, quiet_hours=quiet)
    found = []
    for value in (100.0, 99.99, 90.0, 105.0, 110.0, None, 110.1, 100.0, 99.0):
        read_number(alert, value)
        found.append(len(messages(alert)))
    assert found == [0, 1, 1, 1, 1, 1, 2, 2, 3]
    assert [occasion for occasion, _ in messages(alert)] == ["started", "ended", "started"]
    # They wait for the end of the quiet hours.
    assert {at.strftime("%H:%M") for at in alert.deliveries.values_list("due_at", flat=True)} == {"23:59"}


@pytest.mark.parametrize(
    ("kind", "numbers"), [("bill", [9.99, 10.0, 9.0, 8.99]), ("savings-low", [10.0, 9.99, 11.0, 11.01])]
)
def test_a_number_that_swings_about_the_threshold_fires_once(kind: str, numbers: list[float]) -> None:
    fires, history = False, []
    for number in numbers:
        fires = KINDS[kind].fires(number, threshold=10.0, already=fires)
        history.append(fires)
    assert history == [False, True, True, False]
