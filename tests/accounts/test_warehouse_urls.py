"""Connections to warehouses, read from pasted addresses."""

from __future__ import annotations

from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.serializers.tenants import Warehouse
from accounts.tenants.pricing import Pricing
from accounts.tenants.warehouse_urls import parse_warehouse
from tenantadmin.lib.core.errors import ValidationFailed
from tenantadmin.lib.http.serializers import validated
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests.factories import World


DATABRICKS = {"adapterType": "databricks", "serverHostname": "dbc-1.cloud.databricks.com"}
SNOWFLAKE = {"adapterType": "snowflake", "serverHostname": "org-acct.snowflakecomputing.com"}
POSTGRES = {"adapterType": "postgresql", "serverHostname": "db.example.org"}
SECRET = "dapi0123456789abcdef0123"
PWD = f"PWD={SECRET};ConnCatalog=main"
PATH = "/sql/1.0/warehouses/a1b2c3d4e5f60718"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            f"jdbc:databricks://dbc-1.cloud.databricks.com:443/default;ssl=1;httpPath={PATH};UID=token;{PWD}",
            {**DATABRICKS, "port": 443, "httpPath": PATH, "database": "main", "schema": "default"},
        ),
        (
            f"databricks://token:{SECRET}@dbc-1.cloud.databricks.com?http_path={PATH}&catalog=main",
            {**DATABRICKS, "httpPath": PATH, "database": "main"},
        ),
        (
            "https://dbc-1.cloud.databricks.com/sql/warehouses/a1b2c3d4e5f60718?o=123",
            {**DATABRICKS, "httpPath": PATH},
        ),
        (f"  https://DBC-1.cloud.databricks.com{PATH}\n", {**DATABRICKS, "httpPath": PATH}),
        ("dbc-1.cloud.databricks.com", DATABRICKS),
        (
            "adb-12.3.azuredatabricks.net:443",
            {"adapterType": "databricks", "serverHostname": "adb-12.3.azuredatabricks.net", "port": 443},
        ),
        (
            "jdbc:snowflake://org-acct.snowflakecomputing.com/?db=SALES&schema=PUBLIC&warehouse=WH_S&password=x",
            {**SNOWFLAKE, "database": "SALES", "schema": "PUBLIC", "warehouseName": "WH_S"},
        ),
        (
            "snowflake://me:hunter2@org-acct/SALES/PUBLIC?warehouse=WH_S",
            {**SNOWFLAKE, "database": "SALES", "schema": "PUBLIC", "warehouseName": "WH_S"},
        ),
        (
            "snowflake://me:x@xy12345.eu-central-1.aws/SALES",
            {
                "adapterType": "snowflake",
                "serverHostname": "xy12345.eu-central-1.aws.snowflakecomputing.com",
                "database": "SALES",
            },
        ),
        ("https://app.snowflake.com/ORG/acct/#/homepage", SNOWFLAKE),
        *(
            (text, {"adapterType": "snowflake", "serverHostname": f"xy12345{region}.snowflakecomputing.com"})
            for text, region in [
                ("https://app.snowflake.com/us-east-1/xy12345/#/homepage", ".us-east-1"),
                ("https://app.snowflake.com/east-us-2.azure/xy12345/w1/query", ".east-us-2.azure"),
                ("snowflake://me:x@xy12345.us-west-2", ""),
                ("snowflake://me:x@xy12345.us-west-2.aws", ""),
                ("snowflake://me:x@xy12345.us-east-1.privatelink", ".us-east-1.privatelink"),
                ("https://xy12345.eu-west-1.snowflakecomputing.com/console/login", ".eu-west-1"),
                ("https://xy12345.snowflakecomputing.com/console#/data/databases", ""),
            ]
        ),
        (
            "snowflake://u:p@xy12345.us-east-1/db",
            {
                "adapterType": "snowflake",
                "serverHostname": "xy12345.us-east-1.snowflakecomputing.com",
                "database": "db",
            },
        ),
        (
            "snowflake://u:p@xy12345.cn-northwest-1.aws",
            {
                "adapterType": "snowflake",
                "serverHostname": "xy12345.cn-northwest-1.aws.snowflakecomputing.cn",
            },
        ),
        *(
            (f"https://dbc-1.cloud.databricks.com/{page}", DATABRICKS)
            for page in [
                "?o=123#setting/clusters",
                "sql/editor/0a1b?o=1",
                "explore/data/main/sales/orders",
                "compute/sql-warehouses",
                "browse/folders/42",
            ]
        ),
        (
            "https://dbc-1.cloud.databricks.com/sql/warehouses/a1b2c3d4e5f60718/monitoring?o=123",
            {**DATABRICKS, "httpPath": PATH},
        ),
        (
            "postgres://me:p%40ss@db.example.org:5433/sales?sslmode=require",
            {**POSTGRES, "port": 5433, "database": "sales"},
        ),
        (
            "jdbc:postgresql://db.example.org/sales?user=me&password=x&currentSchema=mart",
            {**POSTGRES, "database": "sales", "schema": "mart"},
        ),
        (
            "host=db.example.org port=5432 dbname='my sales' user=me password=hunter2",
            {**POSTGRES, "port": 5432, "database": "my sales"},
        ),
        (
            "postgresql+psycopg://me:x@localhost/sales",
            {"adapterType": "postgresql", "serverHostname": "localhost", "database": "sales"},
        ),
        (
            "postgresql://10.0.0.5/sales",
            {"adapterType": "postgresql", "serverHostname": "10.0.0.5", "database": "sales"},
        ),
    ],
)
def test_addresses(text: str, found: dict[str, Any]) -> None:
    connection = msgspec.to_builtins(parse_warehouse(text))
    assert connection == found
    # A configuration takes it as it is.
    assert validated(Warehouse, connection) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "warehouse",
        "https://example.org/sql",
        "mysql://db.example.org/sales",
        "postgresql://",
        "postgresql://db.example.org:99999/sales",
        "postgresql://me:pa/ss@db.example.org/sales",
        "postgresql://me:12/ss@db.example.org/sales",
        "postgresql://[::1/sales",
        "host= dbname=x",
        "host=a port=x",
        "host='unclosed",
        "snowflake://me:x@/SALES",
        "https://app.snowflake.com/",
        "https://app.snowflake.com/_deeplink/#/homepage",
        "https://app.snowflake.com/console/login",
        "https://accounts.cloud.databricks.com/workspaces",
        "Driver={SnowflakeDSIIDriver};Server=org-acct.snowflakecomputing.com;Database=SALES;UID=me;PWD=x",
        "Driver={Simba Spark ODBC Driver};Host=dbc-1.cloud.databricks.com;HTTPPath=/sql/1.0/warehouses/a",
        "Driver={PostgreSQL Unicode};Server=db.example.org;Port=5432;Database=sales;Uid=me;Pwd=x",
        "Host=db.example.org;Port=5432;Database=sales;Username=me;Password=x",
        "host=db.example.org;port=5432;database=sales;username=me;password=x",
        "account=xy12345.us-east-1;user=me;password=x;db=SALES",
        "databricks://dbc-1.cloud.databricks.com?http_path=dapi0123456789abcdef0123",
    ],
)
def test_other_text_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        parse_warehouse(text)
    assert refused.value.details[0].path == "/text"
    assert not any(part in str(refused.value.details) for part in (SECRET, "12/ss"))


@pytest.mark.slow
@given(text=st.text(max_size=60) | st.from_regex(r"(jdbc:)?(postgresql|snowflake|databricks)://[^\s]{0,40}"))
def test_any_text_is_a_connection_or_a_400(text: str) -> None:
    try:
        found = parse_warehouse(text)
    except ValidationFailed:
        return
    assert found.server_hostname


@given(password=st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=6, max_size=20))
def test_no_password_comes_back(password: str) -> None:
    """Also where it is not percent-encoded, as people paste it."""
    marked = f"zq{password}qz"
    for address in (
        "postgresql://me:{}@db.example.org/sales",
        "snowflake://me:{}@org-acct/SALES?warehouse=W",
    ):
        shown: object
        try:
            shown = parse_warehouse(address.format(marked))
        except ValidationFailed as refused:
            shown = refused.details
        assert "zq" not in str(shown)


def test_the_operation_answers_and_keeps_nothing(world: World) -> None:
    client = ApiClient(factories.sign_in(world.member))
    answer = client.post("/config/warehouse/parse", {"text": "host=db.example.org password=x"})
    assert (answer.status_code, answer.json()) == (200, POSTGRES)
    assert client.post("/config/warehouse/parse", {"text": "x"}).status_code == 400


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
        [PRICE, {**PRICE, "host": "LOADING"}, {**PRICE, "host": "LOADING", "from": "2026-02-01"}],
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
        ([PRICE, {**PRICE, "host": "A"}, {**PRICE, "host": "A"}], "/2/from"),
        ([PRICE, {**PRICE, "host": "A", "currency": "EUR"}], "/1/currency"),
        ([{**PRICE, "host": ""}], "/0/host"),
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


def test_a_host_may_have_prices_of_its_own() -> None:
    later = {**PRICE, "host": "A", "perHour": "5", "autoSuspendSeconds": 60, "from": "2026-02-01"}
    pricing = priced({**PRICE, "host": "A"}, later)
    assert [
        pricing.on(date.fromisoformat(day), host).per_hour
        for day, host in [("2026-01-02", "A"), ("2026-02-01", "A"), ("2026-02-01", "B"), ("2026-02-01", None)]
    ] == [30_000, 50_000, None, None]
    assert pricing.suspending_after(9).on(date(2026, 3, 1), "A").suspend_seconds == 9
    assert pricing.currency == "USD"


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
