"""What recommendations could save together."""

from __future__ import annotations

import datetime as dt
from typing import Any

from analytics.advice.proposal import Kind
from analytics.advice.words import purpose_of, say_open, say_possible
from analytics.models import Recommendation


def one(kind: Kind, *, saved: int, money: tuple[str, str] | None = None) -> Recommendation:
    gain: dict[str, Any] = {"savedMs": {"low": saved, "likely": None, "high": saved}}
    if money:
        gain["money"] = {"currency": "USD", "low": money[0], "high": money[1]}
    days = {"first_day": dt.date(2026, 3, 1), "last_day": dt.date(2026, 3, 14)}
    patch = [] if kind is Kind.AUTO_SUSPEND else [{"op": "remove", "ruleId": "a"}]
    return Recommendation(kind=kind, predicted={"gain": gain}, patch=patch, **days)


def test_the_sum_leaves_out_losses_and_names_leaks() -> None:
    rows = [
        one(Kind.LEAK_FIX, saved=-60_000, money=("0.20", "0.50")),
        one(Kind.AUTO_SUSPEND, saved=0, money=("-20.00", "-10.00")),
        one(Kind.CACHE, saved=7_200_000),
        one(Kind.SWR, saved=3_600_000),
    ]
    assert say_possible(rows, ()) == (
        "1 privacy leak to close. Over the 14 days replayed, changes of rules could save about 1 h "
        "of waiting time and 2 h of warehouse time; letting the warehouse suspend sooner could save about 15 "
        "USD. Each was predicted alone: together they may save less."
    )
    assert say_possible(rows[:1], ()) == "1 privacy leak to close."
    assert say_possible([], ()) is None
    assert say_open(rows, ()) == (
        "4 open recommendations: 1 privacy leak to close; over the 14 days replayed, changes of rules could "
        "save about 1 h of waiting time and 2 h of warehouse time; letting the warehouse suspend sooner "
        "could save about 15 USD"
    )
    assert say_open(rows[:1], ()) == "1 open recommendation: 1 privacy leak to close"
    assert say_open([one(Kind.REMOVE, saved=0)], ()) == "1 open recommendation"
    assert say_open([], ()) is None
    assert [purpose_of(row.kind) for row in rows] == ["privacy", "saves money", "saves time", "no waiting"]
    # Two minutes beside hours are not worth a word.
    rows[3] = one(Kind.SWR, saved=120_000)
    assert "rules could save about 2 h of warehouse time;" in (say_open(rows, ()) or "")


def test_what_changes_earlier_rules_promises_nothing() -> None:
    rows = [one(Kind.CACHE, saved=7_200_000), one(Kind.AUTO_SUSPEND, saved=0, money=("-20.00", "-10.00"))]
    earlier = {rows[0].pk}
    saved = "letting the warehouse suspend sooner could save about 15 USD"
    assert say_open(rows, earlier) == (
        f"1 open recommendation: over the 14 days replayed, {saved}; "
        "1 recommendation is of earlier rules: search again"
    )
    assert say_possible(rows, earlier) == f"Over the 14 days replayed, {saved}."
    assert say_open([rows[0]] * 2, earlier) == "2 recommendations are of earlier rules: search again"
    searching = say_open(rows[:1], earlier, is_searching=True)
    assert searching == "1 recommendation is of earlier rules: a new search is running"
    assert say_possible(rows[:1], earlier) is None
