"""Numbers of savings for logs of a few entries. All are also checked against the judge."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.analytics.savings.judge import Price, Row, judge
from tests.analytics.savings.logs import (
    FIRST_DAYS,
    answer,
    both_answers,
    make_row,
    random_prices,
    random_rows,
)

DAY = date(2026, 3, 10)
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
PRICE: Price = {"from": "2026-01-01", "currency": "USD", "perHour": "3.00", "billing": "suspending"}


def savings(
    rows: Sequence[Row], *prices: Price, first: date = DAY, last: date = DAY, step: str = "day"
) -> Any:
    """Return the service's answer, which must be the judge's."""
    with duckdb.connect(config={"threads": 1}) as connection:
        found = answer(connection, rows, prices, first, last, step=step)
    assert found == judge(rows, prices, first, last, step)
    return found


def billed(rows: Sequence[Row], *prices: Price, first: date = DAY, last: date = DAY) -> list[int]:
    return [day["withCache"]["billedMs"] for day in savings(rows, *prices, first=first, last=last)["days"]]


def miss(at: int, ms: int | None, day: date = DAY, **fields: Any) -> Row:
    return make_row(day, at, "MISS", warehouseExecutionTimeMs=ms, **fields)


def hit(at: int, day: date = DAY, **fields: Any) -> Row:
    return make_row(day, at, "HIT", **{"matchedRule": "r", **fields})


def test_a_session_ends_when_the_warehouse_suspends_and_bills_at_least_the_minimum() -> None:
    assert billed([miss(0, 1_000)]) == [301 * SECOND]
    assert billed([miss(0, 1_000)], {**PRICE, "autoSuspendSeconds": 10}) == [60 * SECOND]
    assert billed([miss(0, 1_000)], {**PRICE, "autoSuspendSeconds": 0, "minimumSeconds": 0}) == [SECOND]


@pytest.mark.parametrize(("pause", "total"), [(300_000, 600_000), (300_001, 1_200_000)])
def test_an_execution_at_the_moment_of_the_suspend_still_belongs_to_the_session(
    pause: int, total: int
) -> None:
    """Each start bills at least ten minutes."""
    rows = [miss(0, 0), miss(pause, 0)]
    assert billed(rows, {**PRICE, "minimumSeconds": 600}) == [total]


def test_a_session_that_starts_within_the_minimum_of_the_one_before_it_bills_its_own() -> None:
    assert billed([miss(0, 0), miss(30_000, 0)], {**PRICE, "autoSuspendSeconds": 10}) == [120 * SECOND]


def test_a_short_execution_does_not_end_the_session_of_a_long_one() -> None:
    rows = [miss(0, HOUR), miss(10 * MINUTE, 1), miss(64 * MINUTE, 0)]
    assert billed(rows) == [69 * MINUTE]


def test_hosts_are_billed_apart_and_null_is_a_host() -> None:
    rows = [miss(0, 0), miss(0, 0, serverHostname=None), miss(0, 0, serverHostname="other")]
    assert billed(rows) == [15 * MINUTE]


def test_sessions_go_on_over_midnight_month_and_year() -> None:
    day = date(2025, 12, 31)
    rows = [miss(24 * HOUR - MINUTE, 2 * MINUTE, day)]
    assert billed(rows, first=day, last=day + timedelta(1)) == [MINUTE, 6 * MINUTE]
    # The day before the window is read, and the day before it is not.
    assert billed(rows, first=day + timedelta(1), last=day + timedelta(1)) == [6 * MINUTE]
    assert billed(rows, first=day + timedelta(2), last=day + timedelta(2)) == [0]
    months = savings(rows, first=day, last=day + timedelta(1), step="month")["months"]
    assert [(month["month"], month["withCache"]["billedMs"]) for month in months] == [
        ("2025-12", MINUTE),
        ("2026-01", 6 * MINUTE),
    ]


def test_hits_spare_time_awake_only_where_the_warehouse_would_sleep() -> None:
    body = savings([miss(0, 60_000), hit(2 * MINUTE), hit(2 * HOUR)], PRICE)
    assert body["total"] == {
        "withCache": {"billedMs": 6 * MINUTE, "busyMs": MINUTE, "money": "0.30"},
        "without": {"billedMs": 14 * MINUTE, "busyMs": 3 * MINUTE, "money": "0.70"},
        "saved": {"billedMs": 8 * MINUTE, "busyMs": 2 * MINUTE, "money": "0.40"},
    }
    assert body["rules"] == [
        {"ruleId": "r", "hits": 2, "busyMs": 2 * MINUTE, "marginalMs": 8 * MINUTE, "money": "0.40"}
    ]


def test_what_rules_spare_together_is_not_the_sum() -> None:
    rows = [miss(0, 0), hit(HOUR, matchedRule="a"), hit(HOUR + SECOND, matchedRule="b")]
    rules = savings([*rows, make_row(DAY, 2 * HOUR, "HOLD", matchedRule="b")])["rules"]
    assert {rule["ruleId"]: (rule["hits"], rule["marginalMs"]) for rule in rules} == {
        "a": (1, 5 * MINUTE),
        "b": (2, 10 * MINUTE),
    }


def test_a_marginal_is_the_difference_of_two_runs() -> None:
    rows = [miss(0, 0), *(hit(number * 4 * MINUTE, matchedRule=f"r{number % 3}") for number in range(40))]
    body = savings(rows, PRICE)
    for rule in body["rules"]:
        alone = [row for row in rows if row["matchedRule"] in {None, rule["ruleId"]}]
        assert savings(alone, PRICE)["total"]["saved"]["billedMs"] == rule["marginalMs"]


def test_the_mean_is_rounded_down_and_may_come_from_entries_without_a_timestamp() -> None:
    rows = [miss(0, 1), make_row(DAY, None, "BYPASS", warehouseExecutionTimeMs=2), hit(HOUR)]
    assert savings(rows)["total"]["saved"]["busyMs"] == 1
    assert savings([*rows[1:], miss(0, None)])["total"]["withCache"]["busyMs"] == 2


def test_unknown_times_are_reported() -> None:
    body = savings(
        [
            hit(0),
            miss(0, None),
            miss(0, -5),
            make_row(DAY, 0, "ERROR", warehouseExecutionTimeMs=-1),
            make_row(DAY, 0, "ERROR"),
            make_row(DAY, 0, "BLOCKED"),
            hit(0, standardizedSql=None),
            miss(0, 7, standardizedSql=None),
        ]
    )
    assert (body["unmeasured"], body["unmeasuredShare"]) == (5, 0.8333)
    assert body["total"]["withCache"]["busyMs"] == 7
    assert body["rules"] == []


def test_a_failed_execution_counts_by_its_own_time_alone() -> None:
    rows = [make_row(DAY, 0, "ERROR", warehouseExecutionTimeMs=1_000), hit(HOUR)]
    body = savings(rows)
    assert body["total"]["withCache"]["billedMs"] == 301 * SECOND
    assert body["unmeasured"] == 1


def test_absurd_durations_are_clipped_to_the_window() -> None:
    assert billed([miss(0, 2**31 - 1)]) == [24 * HOUR]


def test_negative_durations_are_the_mean_of_the_statement_and_never_end_before_they_begin() -> None:
    assert billed([miss(0, -(2**31)), miss(HOUR, 1_000)]) == [2 * 301 * SECOND]
    # The statement was never measured.
    assert billed([miss(0, -1)]) == [0]


def test_a_host_that_changes_has_its_last_session_and_the_next_host_its_first() -> None:
    rows = [miss(0, MINUTE, serverHostname="old"), miss(2 * MINUTE, MINUTE, serverHostname="new")]
    assert billed(rows) == [12 * MINUTE]
    # On one host they are one session.
    assert billed([miss(0, MINUTE), miss(2 * MINUTE, MINUTE)]) == [8 * MINUTE]


def test_the_order_of_the_log_does_not_matter() -> None:
    rows = [*(miss(number * 7 * MINUTE, number * SECOND) for number in range(50)), hit(HOUR), hit(30 * HOUR)]
    assert savings(rows[::-1], PRICE) == savings(rows, PRICE)


def test_entries_of_clocks_apart_are_awake_when_they_say_and_busy_on_the_day_of_their_object() -> None:
    """The Gateway's clock was off by -25, 2, 47 and 48 hours. The last is too far."""
    rows = [miss(hours * HOUR, MINUTE) for hours in (-25, 26, 71, 72)]
    body = savings(rows, first=DAY - timedelta(2), last=DAY + timedelta(1))
    assert [day["withCache"]["billedMs"] for day in body["days"]] == [6 * MINUTE, 0, 0, 6 * MINUTE]
    assert [day["withCache"]["busyMs"] for day in body["days"]] == [0, 0, 3 * MINUTE, 0]
    assert body["unmeasured"] == 1


def test_days_without_a_log_bill_what_reaches_into_them() -> None:
    rows = [miss(24 * HOUR - MINUTE, HOUR), miss(0, 0, DAY + timedelta(3))]
    assert billed(rows, last=DAY + timedelta(3)) == [MINUTE, 64 * MINUTE, 0, 5 * MINUTE]


def test_a_rule_is_listed_with_hits_in_the_window_or_with_an_effect_on_it() -> None:
    before = DAY - timedelta(1)
    late, early = hit(24 * HOUR - MINUTE, before, matchedRule="late"), hit(0, before, matchedRule="early")
    rules = savings([miss(12 * HOUR, 0), late, early])["rules"]
    assert [(rule["ruleId"], rule["hits"], rule["marginalMs"]) for rule in rules] == [("late", 0, 4 * MINUTE)]


class TestPrices:
    def test_a_price_that_changes_splits_to_the_cent(self) -> None:
        """An hour of each day, and the second half of a session belongs to the next day's price."""
        day, later = date(2026, 3, 15), date(2026, 3, 16)
        price = {**PRICE, "autoSuspendSeconds": 0, "minimumSeconds": 0}
        rows = [miss(24 * HOUR - 10 * MINUTE, 20 * MINUTE, day), miss(HOUR, 7 * MINUTE, later)]
        body = savings(
            rows,
            {**price, "perHour": "3.01"},
            {**price, "from": "2026-03-16", "perHour": "7.77"},
            first=day,
            last=later,
        )
        assert [one["withCache"]["money"] for one in body["days"]] == ["0.50", "2.20"]
        # 0.50166… + 2.2015 is 2.70316…
        assert body["total"]["withCache"]["money"] == "2.70"

    def test_days_before_the_first_price_have_its_terms_and_no_money(self) -> None:
        price = {**PRICE, "from": "2026-03-11", "autoSuspendSeconds": 600}
        body = savings([miss(0, 0), miss(0, 0, DAY + timedelta(1))], price, last=DAY + timedelta(1))
        assert [one["withCache"] for one in body["days"]] == [
            {"billedMs": 10 * MINUTE, "busyMs": 0, "money": None},
            {"billedMs": 10 * MINUTE, "busyMs": 0, "money": "0.50"},
        ]
        assert body["total"]["withCache"] == {"billedMs": 20 * MINUTE, "busyMs": 0, "money": "0.50"}

    def test_without_a_price_there_are_hours_alone(self) -> None:
        body = savings([miss(0, 0)])
        assert body["currency"] is None
        assert body["total"]["withCache"] == {"billedMs": 5 * MINUTE, "busyMs": 0, "money": None}

    def test_an_execution_has_the_suspend_and_a_session_the_minimum_of_its_start(self) -> None:
        price = {**PRICE, "minimumSeconds": 0}
        later = {**price, "from": "2026-03-11", "autoSuspendSeconds": 60, "minimumSeconds": 3_600}
        rows = [miss(24 * HOUR - MINUTE, 0), miss(MINUTE, 0, DAY + timedelta(1))]
        # The first execution keeps it awake until 00:04, the second one until 00:02.
        assert billed(rows, price, later, last=DAY + timedelta(1)) == [MINUTE, 4 * MINUTE]

    def test_a_warehouse_that_bills_execution_has_no_suspend(self) -> None:
        body = savings([miss(0, HOUR), hit(2 * HOUR)], {**PRICE, "billing": "busy"})
        assert body["total"]["withCache"]["billedMs"] == HOUR
        assert body["total"]["saved"] == {"billedMs": HOUR, "busyMs": HOUR, "money": "3.00"}
        assert body["rules"][0]["money"] == "3.00"

    def test_hits_of_a_warehouse_that_is_always_on_save_no_money(self) -> None:
        body = savings([miss(0, HOUR), hit(2 * HOUR)], {**PRICE, "billing": "always-on"})
        assert body["total"]["withCache"] == {"billedMs": 24 * HOUR, "busyMs": HOUR, "money": "72.00"}
        assert body["total"]["saved"] == {"billedMs": 0, "busyMs": HOUR, "money": "0.00"}
        assert body["rules"][0]["marginalMs"] == 0

    def test_savings_may_be_negative_and_are_rounded_from_the_exact_difference(self) -> None:
        """A hit that joins two sessions saves their minimum: the bill would be less without the cache."""
        price = {**PRICE, "autoSuspendSeconds": 60, "minimumSeconds": 3_600, "perHour": "1.5"}
        rows = [miss(0, 0), miss(2 * MINUTE, 0), hit(MINUTE)]
        body = savings(rows, price)
        assert body["total"]["saved"] == {"billedMs": -HOUR, "busyMs": 0, "money": "-1.50"}
        assert savings(rows, {**price, "currency": "JPY"})["total"]["saved"]["money"] == "-2"


EXAMPLES = int(os.environ.get("SAVINGS_EXAMPLES", "60"))
SEED = int(os.environ.get("SAVINGS_SEED", "0"))
PARTS = 4


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


@pytest.mark.parametrize("part", range(PARTS))
def test_every_number_is_the_judges(connection: duckdb.DuckDBPyConnection, part: int) -> None:
    for seed in range(SEED + part, SEED + EXAMPLES, PARTS):
        chance = random.Random(seed)  # noqa: S311  # reproducible, not secret
        first = chance.choice(FIRST_DAYS)
        last = first + timedelta(chance.choice([0, 0, 1, 3]))
        rows, prices = random_rows(chance, first, last), random_prices(chance, first, last)
        step = chance.choice(["day", "month"])
        found = answer(connection, rows, prices, first, last, step=step)
        assert found == judge(rows, prices, first, last, step), f"seed {seed}"


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_kept_of_each_day_gives_the_same_rows(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, part: int
) -> None:
    for seed in range(SEED + part, SEED + EXAMPLES, PARTS):
        chance = random.Random(seed)  # noqa: S311  # reproducible, not secret
        first = chance.choice(FIRST_DAYS)
        last = first + timedelta(chance.choice([0, 0, 1, 3]))
        rows, prices = random_rows(chance, first, last), random_prices(chance, first, last)
        kept, logged = both_answers(connection, rows, prices, first, last, directory=tmp_path)
        assert kept == logged, f"seed {seed}"
