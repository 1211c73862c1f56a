"""Prices of a warehouse: what a configuration accepts, and amounts of money. Contract: TenantConfig."""

from __future__ import annotations

from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.tenants.pricing import Pricing
from tests import factories
from tests.conftest import ApiClient

PRICE = {
    "from": "2026-01-01",
    "currency": "USD",
    "perHour": "3.00",
    "billing": "suspending",
    "autoSuspendSeconds": 300,
    "minimumSeconds": 60,
}


def put(world: factories.World, pricing: Any) -> Any:
    client = ApiClient(factories.sign_in(world.owner))
    address = f"/config/tenants/{world.tenant.pk}/config"
    warehouse = {"adapterType": "snowflake", "serverHostname": "acme.snowflakecomputing.com"}
    document = {**client.get(address).json(), "warehouse": {**warehouse, "pricing": pricing}}
    return client.put(address, document)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "pricing",
    [
        [],
        [PRICE],
        [PRICE, {**PRICE, "from": "2026-01-02", "perHour": "999999999.9999", "billing": "always-on"}],
        [{"from": "0001-01-01", "currency": "JPY", "perHour": "0", "billing": "busy"}],
        [{**PRICE, "autoSuspendSeconds": 0, "minimumSeconds": 604_800}],
    ],
)
def test_prices_are_stored_as_sent(world: factories.World, pricing: Any) -> None:
    answer = put(world, pricing)
    assert answer.status_code == 200, answer.content
    assert answer.json()["warehouse"]["pricing"] == pricing


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("pricing", "path"),
    [
        (None, ""),
        ({}, ""),
        ([PRICE, {**PRICE, "from": "2026-01-01"}], "/1/from"),
        ([PRICE, {**PRICE, "from": "2025-12-31"}], "/1/from"),
        ([PRICE, {**PRICE, "from": "2026-02-01", "currency": "EUR"}], "/1/currency"),
        ([{**PRICE, "from": "2026-02-30"}], "/0/from"),
        ([{**PRICE, "from": "2026-02-01T00:00:00Z"}], "/0/from"),
        ([{**PRICE, "currency": "usd"}], "/0/currency"),
        ([{**PRICE, "currency": "$"}], "/0/currency"),
        ([{**PRICE, "perHour": 3}], "/0/perHour"),
        ([{**PRICE, "perHour": 3.5}], "/0/perHour"),
        ([{**PRICE, "perHour": "-1"}], "/0/perHour"),
        ([{**PRICE, "perHour": "3,00"}], "/0/perHour"),
        ([{**PRICE, "perHour": "3.00000"}], "/0/perHour"),
        ([{**PRICE, "perHour": "1e3"}], "/0/perHour"),
        ([{**PRICE, "perHour": "03"}], "/0/perHour"),
        ([{**PRICE, "perHour": "."}], "/0/perHour"),
        ([{**PRICE, "perHour": "3."}], "/0/perHour"),
        ([{**PRICE, "perHour": "٣"}], "/0/perHour"),
        ([{**PRICE, "perHour": "1000000000"}], "/0/perHour"),
        ([{**PRICE, "billing": "hourly"}], "/0/billing"),
        ([{**PRICE, "autoSuspendSeconds": -1}], "/0/autoSuspendSeconds"),
        ([{**PRICE, "autoSuspendSeconds": 604_801}], "/0/autoSuspendSeconds"),
        ([{**PRICE, "minimumSeconds": "60"}], "/0/minimumSeconds"),
        ([{**PRICE, "minutes": 1}], "/0/minutes"),
        ([{key: PRICE[key] for key in PRICE if key != "from"}], "/0/from"),
        ([{key: PRICE[key] for key in PRICE if key != "billing"}], "/0/billing"),
        ([{**PRICE, "from": f"{year}-01-01"} for year in range(1926, 2027)], ""),
    ],
)
def test_a_wrong_price_is_refused_at_its_place(world: factories.World, pricing: Any, path: str) -> None:
    answer = put(world, pricing)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
    assert [detail["path"] for detail in answer.json()["details"]] == [f"/warehouse/pricing{path}"]


def priced(*prices: dict[str, Any]) -> Pricing:
    return Pricing.of(prices)


def test_each_day_has_the_terms_in_force() -> None:
    pricing = priced(PRICE, {**PRICE, "from": "2026-02-01", "perHour": "4", "billing": "busy"})
    shown = [
        (terms.per_hour, terms.billing)
        for terms in map(pricing.on, map(date.fromisoformat, ("2025-12-31", "2026-01-01", "2026-01-31")))
    ]
    assert shown == [(None, "suspending"), (30_000, "suspending"), (30_000, "suspending")]
    assert (pricing.on(date(2026, 2, 1)).per_hour, pricing.on(date.max).billing) == (40_000, "busy")


def test_without_a_price_hours_are_of_a_warehouse_that_suspends() -> None:
    pricing = priced()
    terms = pricing.on(date(2026, 1, 1))
    assert (pricing.currency, terms.billing, terms.per_hour) == (None, "suspending", None)
    assert (terms.suspend_seconds, terms.minimum_seconds) == (300, 60)


@given(
    st.sampled_from([("USD", "0.01"), ("JPY", "1"), ("KWD", "0.001"), ("CLF", "0.0001")]),
    st.integers(-(10**30), 10**30),
)
def test_money_is_rounded_once_and_half_up(currency: tuple[str, str], amount: int) -> None:
    code, unit = currency
    exact = Fraction(amount, 3_600_000 * 10_000)
    whole, rest = divmod(abs(exact), Fraction(unit))
    units = whole + (2 * rest >= Fraction(unit))
    expected = Decimal(units if amount >= 0 else -units) * Decimal(unit)
    text = priced({**PRICE, "currency": code}).money(amount)
    assert Decimal(text) == expected
    assert text == f"{expected.quantize(Decimal(unit), ROUND_HALF_UP) + 0:f}"
