"""A recommendation as one row, and what the accepted ones gain together."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from analytics.advice.proposal import Kind
from analytics.advice.summary import describe_ledger, summarize
from analytics.models import Effect, Recommendation


def one(
    kind: Kind, *, saved: tuple[int, int] = (0, 0), money: tuple[str, str] | None = None, **fields: Any
) -> Any:
    """Return a recommendation from a replay of ten days."""
    gain: dict[str, Any] = {
        "savedMs": {"low": saved[0], "likely": None, "high": saved[1]},
        "risk": fields.pop("risk", {"low": 0, "high": 0}),
    }
    if money:
        gain |= {
            "money": {"currency": "USD", "low": money[0], "high": money[1]},
            "billedMs": {"low": -200, "high": -100},
        }
    patch = fields.pop("patch", [{"op": "insert", "ruleId": "a"}, {"op": "replace", "ruleId": "b"}])
    predicted = {"gain": gain, **fields.pop("predicted", {})}
    days = {"first_day": dt.date(2026, 3, 1), "last_day": dt.date(2026, 3, 10)}
    return Recommendation(
        kind=kind, predicted=predicted, patch=patch, evidence=fields.pop("evidence", []), **days, **fields
    )


def test_money_is_for_a_month_and_confidence_is_from_the_bounds() -> None:
    found = summarize(one(Kind.CACHE, saved=(1, 2), money=("-5.00", "-4.50")))
    assert (found.gain, found.confidence) == ("≈ 14.25 USD a month", "high")
    assert found.bounds == "Bounds of the replay: 13.50 USD to 15.00 USD a month."
    assert (found.risk, found.effort) == ("none", "adds 1 rule, changes 1 rule")
    assert summarize(one(Kind.CACHE, money=("-5.00", "-3.00"))).confidence == "medium"
    assert summarize(one(Kind.CACHE, money=("-5.00", "-1.00"))).confidence == "low"
    unsure = summarize(one(Kind.CACHE, money=("-5.00", "1.00")))
    assert (unsure.gain, unsure.confidence) == ("≈ 6.00 USD a month", "low")
    assert unsure.bounds == "Bounds of the replay: from 3.00 USD more to 15.00 USD less a month."


def test_without_money_it_is_time() -> None:
    found = summarize(
        one(Kind.TTL, saved=(1_200_000, 1_200_000), money=("0.00", "0.00"), risk={"low": 0, "high": 2})
    )
    assert (found.gain, found.confidence) == ("1 h of warehouse time a month", "high")
    assert found.bounds == "Bounds of the replay: exactly 1 h of warehouse time a month."
    assert found.risk == "up to 6 more stale hits a month"
    assert summarize(one(Kind.SWR, saved=(1_200_000, 1_200_000))).gain == "1 h of waiting time a month"
    assert summarize(one(Kind.REMOVE)).gain == "simpler rules"


def test_privacy_and_freshness_have_a_measure_of_their_own() -> None:
    rows = [{"standardizedSql": "SELECT 1", "served": 195, "users": 4}]
    leak = summarize(one(Kind.LEAK_FIX, saved=(-1_200_000, -1_200_000), evidence=[{"rows": rows}]))
    assert (leak.gain, leak.confidence) == ("195 shared answers → 0", "high")
    assert leak.risk == "costs 1 h of warehouse time a month"
    sides = {"against": {"risk": {"low": 38, "high": 42}}, "total": {"risk": {"low": 0, "high": 0}}}
    stale = summarize(one(Kind.INVALIDATOR, predicted=sides))
    assert (stale.gain, stale.confidence, stale.risk) == ("40 stale hits → 0", "high", "none")
    assert stale.bounds == "Stale hits now: 38 to 42; with the change: 0."


@pytest.mark.parametrize(
    ("warehouse", "statement"),
    [
        (
            {"adapterType": "snowflake", "warehouseName": 'W"H'},
            'ALTER WAREHOUSE "W""H" SET AUTO_SUSPEND = 60;',
        ),
        ({"adapterType": "snowflake"}, None),
        ({"adapterType": "databricks", "warehouseName": "WH"}, None),
    ],
)
def test_a_setting_has_a_statement_to_copy(warehouse: dict[str, str], statement: str | None) -> None:
    row = one(
        Kind.AUTO_SUSPEND,
        money=("-1.00", "-1.00"),
        patch=[],
        predicted={"autoSuspend": {"now": 600, "then": 60}},
    )
    found = summarize(row, warehouse=warehouse)
    assert found.statement == statement
    assert (found.gain, found.effort) == ("3.00 USD a month", "one setting of the warehouse")


def accepted(row: Any, **result: Any) -> Any:
    row.state = Recommendation.State.ACCEPTED
    Effect(recommendation=row, first_day=dt.date(2026, 4, 1), last_day=dt.date(2026, 4, 3), result=result)
    return row


def test_the_ledger_adds_what_was_measured() -> None:
    money = accepted(
        one(Kind.CACHE, money=("-2.00", "-1.00")), billedMs={"measured": -300, "inconclusive": False}
    )
    time = accepted(
        one(Kind.TTL, saved=(1_200_000, 1_200_000)), savedMs={"measured": 360_000, "inconclusive": True}
    )
    waiting = one(Kind.CACHE, state=Recommendation.State.ACCEPTED)
    # Read, and there is none.
    waiting._state.fields_cache["effect"] = None
    # 300 ms at 0.01 USD/ms in three days.
    assert summarize(money).measured == "30.00 USD a month, 360.00 USD a year"
    assert (
        summarize(time).measured
        == "1 h of warehouse time a month, 12 h of warehouse time a year (inconclusive)"
    )
    assert summarize(waiting).measured is None
    assert describe_ledger([money, time, waiting, one(Kind.CACHE)]) == (
        "3 accepted recommendations, 2 of them measured: 30.00 USD and 1 h of warehouse time a month, 360.00 "
        "USD and 12 h of warehouse time a year. Predicted for these: 4.50 USD and 1 h of warehouse time a "
        "month."
    )
    assert (
        describe_ledger([waiting])
        == "1 accepted recommendation. Effects are measured after three whole days."
    )
    assert describe_ledger([one(Kind.CACHE)]) is None
