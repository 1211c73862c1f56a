"""Formats of numbers and times. `tests/browser/test_formats.py` compares the dashboard's with them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantadmin.lib.core import formats
from tests.format_cases import CASES, NOW


@pytest.mark.parametrize(("name", "value", "text"), CASES)
def test_a_value_is_shown_as_this_text(name: str, value: Any, text: str) -> None:
    assert getattr(formats, name)(value) == text


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        ("2026-10-02", "2026-10-31", "2 to 31 October"),
        ("2026-10-02", "2026-11-29", "2 October to 29 November"),
        ("2025-12-29", "2026-01-04", "29 December 2025 to 4 January 2026"),
        ("2025-10-02", "2025-10-31", "2 to 31 October 2025"),
        ("2025-10-02", "2025-11-29", "2 October to 29 November 2025"),
    ],
)
def test_days_are_shown_without_what_repeats(first: str, last: str, text: str) -> None:
    days = (dt.date.fromisoformat(day) for day in (first, last))
    assert formats.days_between(*days, today=dt.date(2026, 11, 27)) == text


@given(st.floats(0, 1))
def test_only_all_is_all_and_only_none_is_none(share: float) -> None:
    text = formats.percent(share)
    assert (text == "100%") == (share == 1)
    assert (text == "0%") == (share == 0)
    assert text not in {"0.0%", "100.0%"}


@given(st.integers(1, 10**18))
def test_a_unit_is_never_full(value: int) -> None:
    number, unit = formats.size(value).split(" ")
    assert unit == "PB" or 1 <= float(number) < 1000
    number, unit = formats.duration(value).split(" ")
    assert float(number.replace(",", "")) < {"ms": 1000, "s": 60, "min": 60, "h": 10**12}[unit]


@given(st.integers(0, 10**9))
def test_a_span_is_exact(seconds: int) -> None:
    number, unit = formats.span(seconds).split(" ")
    assert int(number.replace(",", "")) * {"s": 1, "min": 60, "h": 3600, "d": 86_400}[unit] == seconds


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("12.30", "12.30 USD"),
        ("1234567.05", "1,234,567.05 USD"),
        ("-0.50", "−0.50 USD"),
        ("0.00", "0.00 USD"),
        ("1200", "1,200 USD"),
        (None, "–"),
    ],
)
def test_money_keeps_its_digits(amount: str | None, text: str) -> None:
    assert formats.money(amount, "USD") == text


@pytest.mark.parametrize(
    ("amounts", "text"),
    [
        (("0.00", "9.32"), "0 to 9.32 USD"),
        (("1234.50", "20"), "20 to 1,234.50 USD"),
        (("-1.30", "0.00"), "−1.30 to 0 USD"),
        (("9.30", "9.3"), "9.3 USD"),
    ],
)
def test_amounts_have_the_currency_once(amounts: tuple[str, str], text: str) -> None:
    assert formats.money_between(amounts, "USD") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (-1, "just now"),
        (59.4, "just now"),
        (59.999, "1 minute ago"),
        (60, "1 minute ago"),
        (3569, "59 minutes ago"),
        (3599, "1 hour ago"),
        (7200, "2 hours ago"),
        (9 * 3600 + 86_399, "1 day ago"),
        (9 * 3600 + 86_401, "2 days ago"),
        (8 * 86_400, "8 days ago"),
        (59 * 86_400, "59 days ago"),
        (60 * 86_400, "2 months ago"),
        (349 * 86_400, "12 months ago"),
        (364 * 86_400, "1 year ago"),
        (365 * 86_400, "1 year ago"),
        (-3 * 3600, "in 3 hours"),
        (-4 * 3600 + 1, "in 4 hours"),
        (-86_400, "in 1 day"),
    ],
)
def test_how_long_ago_a_time_was(seconds: float, text: str) -> None:
    assert formats.ago(NOW - dt.timedelta(seconds=seconds), now=NOW) == text


def test_days_are_those_of_the_calendar() -> None:
    now = dt.datetime(2026, 11, 27, 12, tzinfo=dt.UTC)
    for hour in (0, 11, 23):
        assert formats.ago(dt.datetime(2026, 11, 19, hour, tzinfo=dt.UTC), now=now) == "8 days ago"
    late = dt.datetime(2026, 11, 18, 23, 30, tzinfo=dt.UTC)
    assert formats.ago(late, now=now) == "9 days ago"
    assert formats.ago(late, now=now, zone=dt.timezone(dt.timedelta(hours=1))) == "8 days ago"
    assert formats.ago(now + dt.timedelta(hours=37), now=now) == "in 2 days"
    assert formats.ago(dt.datetime(2026, 11, 27, 0, tzinfo=dt.UTC), now=now.replace(hour=23, minute=45)) == (
        "1 day ago"
    )


def test_an_exact_time_is_in_utc() -> None:
    berlin = dt.timezone(dt.timedelta(hours=1))
    assert (
        formats.exact_time(dt.datetime(2026, 11, 25, 0, 34, 10, tzinfo=berlin)) == "2026-11-24 23:34:10 UTC"
    )
    assert formats.exact_time(dt.datetime(33, 1, 2, 3, 4, tzinfo=dt.UTC)) == "0033-01-02 03:04:00 UTC"


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((3_970_000, 2_916_000), ["66.2 min", "48.6 min"]),
        ((129_600_000, 2_916_000), ["36 h", "0.8 h"]),
        ((199_000.0, 7_000.0), ["199 s", "7 s"]),
        ((1_700, 950), ["1.7 s", "1.0 s"]),
        ((7_200_000, 30), ["120 min", "<0.1 min"]),
        ((-144_000, 0, 252_000), ["−2.4 min", "0 min", "4.2 min"]),
        ((0, 0), ["0 ms", "0 ms"]),
        ((0.5, 3), ["<1 ms", "3 ms"]),
    ],
)
def test_durations_that_are_compared_have_one_unit(values: tuple[float, ...], texts: list[str]) -> None:
    assert formats.durations(*values) == texts


def test_a_number_that_is_counted() -> None:
    assert [formats.count(number, "rule") for number in (0, 1, 2276)] == ["0 rules", "1 rule", "2,276 rules"]
    assert [formats.ratio(*pair) for pair in ((0, 0), (0, 5), (99_999, 100_000))] == ["–", "0%", ">99.9%"]
