"""What recommendations could save together, and why a statement gets none."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from analytics.advice.estimate import Statement
from analytics.advice.mine import _find_reason
from analytics.advice.proposal import Kind
from analytics.advice.words import describe_open, describe_possible, purpose_of
from analytics.models import Recommendation
from rules.conditions import read_request


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
    assert describe_possible(rows, ()) == (
        "1 privacy leak to close. Judging by the 14 days replayed, changes of rules could save about 2.1 h "
        "of waiting time and 4.3 h of warehouse time a month; letting the warehouse suspend sooner could "
        "save about 32 USD a month. Each was predicted alone: together they may save less."
    )
    assert describe_possible(rows[:1], ()) == "1 privacy leak to close."
    assert describe_possible([], ()) is None
    assert describe_open(rows, ()) == (
        "4 open recommendations: 1 privacy leak to close; judging by the 14 days replayed, changes of rules "
        "could save about 2.1 h of waiting time and 4.3 h of warehouse time a month; letting the warehouse "
        "suspend sooner could save about 32 USD a month"
    )
    assert describe_open(rows[:1], ()) == "1 open recommendation: 1 privacy leak to close"
    assert describe_open([one(Kind.REMOVE, saved=0)], ()) == "1 open recommendation"
    assert describe_open([], ()) is None
    assert [purpose_of(row.kind) for row in rows] == ["privacy", "saves money", "saves time", "no waiting"]
    # Two minutes beside hours are not worth a word.
    rows[3] = one(Kind.SWR, saved=120_000)
    assert "rules could save about 4.3 h of warehouse time a month;" in (describe_open(rows, ()) or "")


def test_what_changes_earlier_rules_promises_nothing() -> None:
    rows = [one(Kind.CACHE, saved=7_200_000), one(Kind.AUTO_SUSPEND, saved=0, money=("-20.00", "-10.00"))]
    earlier = {rows[0].pk}
    saved = "letting the warehouse suspend sooner could save about 32 USD a month"
    assert describe_open(rows, earlier) == (
        f"1 open recommendation: judging by the 14 days replayed, {saved}; "
        "1 recommendation is of earlier rules: search again"
    )
    assert describe_possible(rows, earlier) == f"Judging by the 14 days replayed, {saved}."
    assert describe_open([rows[0]] * 2, earlier) == "2 recommendations are of earlier rules: search again"
    searching = describe_open(rows[:1], earlier, is_searching=True)
    assert searching == "1 recommendation is of earlier rules: a new search is running"
    assert describe_possible(rows[:1], earlier) is None


def statement_of(text: str, *tables: str) -> Statement:
    columns: dict[str, Any] = {
        "tables": json.dumps(tables),
        "isReadOnly": True,
        "isDataChange": False,
        "isDDL": False,
        "hasNonDeterministicFunctions": False,
    }
    return Statement(0, text, 100, read_request({"standardizedSql": text, **columns}), columns["tables"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * FROM s.t WHERE owner = USER", "per-user"),
        ("SELECT * FROM s.t WHERE owner = $me", "per-user"),
        ("SELECT * FROM s.t WHERE IS_APPLICATION_ROLE_IN_SESSION(?)", "per-user"),
        ("SELECT CURRENT_ROLE_TYPE(), x FROM s.t", "per-user"),
        ("SELECT `current_user`(), x FROM s.t", "per-user"),
        ("SELECT * FROM s.t WHERE r = current_recipient(?)", "per-user"),
        ("SELECT * FROM information_schema.tables", "per-user"),
        ("SELECT current_schema(), x FROM s.t", "per-user"),
        ("SHOW TABLES", "per-user"),
        ("SELECT * FROM s.t WHERE day = CURRENT_DATE", "non-deterministic"),
        ("SELECT * FROM s.t", "too-little-to-save"),
        ("SELECT count(*) FROM app.user (x)", "too-little-to-save"),
    ],
)
def test_the_reason_of_a_statement(text: str, reason: str) -> None:
    assert _find_reason(statement_of(text, "s.t"), is_unsafe=False) == reason


def test_a_table_without_a_schema_is_a_doubt() -> None:
    assert statement_of("SELECT 1", "s.t", "t").names_no_schema
    assert not statement_of("SELECT 1", "s.t", "d.s.t").names_no_schema
