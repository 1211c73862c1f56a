"""What rules change, in words: more or less of what, and never a saving with a minus."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from analytics.replay.figures import figures_of, figures_of_replay


def bounds(low: int, likely: int | None, high: int) -> dict[str, int | None]:
    return {"low": low, "likely": likely, "high": high}


def shown(gain: dict[str, Any], **options: str) -> list[tuple[str, str, str | None, bool]]:
    return [msgspec.structs.astuple(figure) for figure in figures_of(gain, **options)]


RISK = {"low": -9, "high": -3}


def test_a_gain_is_more_hits_and_less_of_everything_else() -> None:
    gain = {
        "savedMs": bounds(60_000, 90_000, 120_000),
        "hits": bounds(40, 50, 60),
        "risk": RISK,
        "billedMs": {"low": -120_000, "high": 0},
        "money": {"currency": "USD", "low": "-1234.50", "high": "0.00"},
    }
    assert shown(gain) == [
        ("On the bill", "0 to 1,234.50 USD less", None, False),
        ("Warehouse time", "≈ 1.5 min less", "bounds: 1 min to 2 min less", False),
        ("Hits", "≈ 50 more", "bounds: 40 to 60 more", False),
        ("Hits at risk of being stale", "3 to 9 fewer", None, False),
    ]


def test_what_costs_is_more_and_speaks_against_the_rules() -> None:
    gain = {
        "savedMs": bounds(-53_600, -53_600, -53_600),
        "hits": bounds(-60, -50, -40),
        "risk": {"low": 0, "high": 4},
        "billedMs": {"low": 360_000, "high": 360_000},
    }
    assert shown(gain, time="Waiting time") == [
        ("On the bill", "6 min more", None, True),
        ("Waiting time", "53.6 s more", None, True),
        ("Hits", "≈ 50 fewer", "bounds: 40 to 60 fewer", True),
        ("Hits at risk of being stale", "0 to 4 more", None, True),
    ]


@pytest.mark.parametrize(
    ("hits", "text", "note"),
    [
        (bounds(0, 0, 0), "no change", None),
        (bounds(-3, 1, 5), "≈ 1 more", "bounds: from 3 fewer to 5 more"),
        (bounds(-3, 0, 5), "no change", "bounds: from 3 fewer to 5 more"),
        (bounds(-3, None, 5), "from 3 fewer to 5 more", None),
        (bounds(0, None, 5), "0 to 5 more", None),
        (bounds(-5, None, 0), "0 to 5 fewer", None),
    ],
)
def test_bounds_on_both_sides_say_both(hits: dict[str, int | None], text: str, note: str | None) -> None:
    gain = {"savedMs": bounds(0, 0, 0), "hits": hits, "risk": {"low": 0, "high": 0}}
    (_, time, *_), (_, *found, _), (_, risk, *_) = shown(gain)
    assert ([time, *found, risk]) == ["no change", text, note, "no change"]


def test_bounds_that_are_shown_alike_are_one_number() -> None:
    saved = bounds(3_600_001, 3_600_002, 3_600_003)
    gain = {"savedMs": saved, "hits": bounds(0, 0, 0), "risk": RISK}
    assert shown(gain)[0] == ("Warehouse time", "≈ 1.0 h less", None, False)


def test_a_replay_is_compared_with_the_rules_in_force() -> None:
    def counts(**values: Any) -> dict[str, Any]:
        same = {"savedMs": bounds(0, 0, 0), "hits": bounds(0, 0, 0), "risk": {"low": 0, "high": 0}}
        return {"requests": 50, **same, **values}

    same = {"ruleId": "same", "hits": bounds(5, 7, 9), "savedMs": bounds(500, 700, 900)}
    rule = {"ruleId": "longer", "hits": bounds(5, None, 21), "savedMs": bounds(4500, 5300, 6100)}
    shorter = {"ruleId": "longer", "hits": bounds(15, None, 16), "savedMs": bounds(100, 300, 500)}
    result: dict[str, Any] = {
        "total": counts(hits=bounds(10, None, 30), savedMs=bounds(5000, 6000, 7000)),
        "rules": [same, rule],
        "against": {
            "total": counts(hits=bounds(20, None, 25), savedMs=bounds(1000, 1000, 1000)),
            "rules": [same, shorter],
        },
    }
    assert [(it.text, it.note) for it in figures_of_replay(result)] == [
        ("≈ 5 s less", "bounds: 4 s to 6 s less"),
        # 5 less 16, and 21 less 15. The rule that stays the same widens nothing.
        ("from 11 fewer to 6 more", None),
        ("no change", None),
    ]
    result["billed"] = {"gain": {"billedMs": {"low": -60_000, "high": -60_000}, "money": None}}
    assert next((it.name, it.text) for it in figures_of_replay(result)) == ("On the bill", "1 min less")
    # As the card of the recommendation, which saves no warehouse time.
    assert figures_of_replay(result, purpose="no waiting")[1].name == "Waiting time"
    result["total"]["requests"] = 0
    assert figures_of_replay(result) == []
