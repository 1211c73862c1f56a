"""The sentence on a replay, and rows that add up."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.replay.judgement import OTHER, bound_misses, count_others, judge

MS = 60_000


def counts(hits: Any, saved: int = 0, *, other: int = 0, risk: int = 0) -> dict[str, Any]:
    """Return the counts of 100 requests."""
    bounds = hits if isinstance(hits, dict) else {"low": hits, "likely": hits, "high": hits}
    return {
        "requests": 100,
        "hits": bounds,
        "savedMs": {"low": saved, "likely": None, "high": saved},
        "risk": {"low": 0, "high": risk},
        **dict.fromkeys(OTHER, 0),
        "bypassed": other,
    }


def result(then: dict[str, Any], now: dict[str, Any], grade: str = "good") -> dict[str, Any]:
    rules = [{"ruleId": "new", **then}, {"ruleId": "old", **counts(0)}]
    against = {"total": now, "rules": [{"ruleId": "new", **now}]}
    calibration, cost = {"grade": grade}, {"best": {"extraMs": 20_000}}
    shown = {"total": then, "rules": rules, "against": against}
    return {**shown, "calibration": calibration, "publishCost": cost}


@pytest.mark.parametrize(
    ("then", "now", "tone", "advice"),
    [
        (counts(60, 2 * MS), counts(50, MS), "good", "Publish them."),
        (counts(50, MS), counts(60, 2 * MS), "bad", "Keep the present rules, unless"),
        (counts(60, MS), counts(50, 2 * MS), "warn", "It gains on one side and loses on the other"),
        (counts(60, MS, risk=9), counts(50, 0), "warn", "Publish them if results as old as that"),
        (counts(60, MS + 9), counts(50, MS), "warn", "Publish them with other changes"),
        (counts(50, MS), counts(50, MS), "warn", "Publishing would only empty the cache."),
    ],
)
def test_what_to_do_next(then: dict[str, Any], now: dict[str, Any], tone: str, advice: str) -> None:
    judged = judge(result(then, now))
    assert (judged.tone, judged.next.startswith(advice)) == (tone, True)


def test_a_replay_that_differs_from_the_log_decides_nothing() -> None:
    judged = judge(result(counts(60, 2 * MS), counts(50, MS), "poor"))
    assert (judged.tone, judged.next[:21]) == ("bad", "Do not decide by this")


def test_a_gain() -> None:
    assert judge(result(counts(60, 2 * MS, risk=3), counts(50, MS))).text == (
        "These rules would answer 10 more requests from the cache (of 100) and spare the warehouse 1 min; "
        "hit rate 50.0% → 60.0%. Most of it is due to the rule “new”. "
        "Up to 3 more hits may be older than a change of their tables."
    )


def test_more_hits_can_be_a_lower_rate() -> None:
    text = judge(result(counts({"low": 40, "likely": 44, "high": 50}), counts(36, other=40))).text
    assert "answer about 8 more requests from the cache (of 100) and spare no more warehouse time" in text
    assert "hit rate 60.0% → 44.0%, because 40 more requests may be cached." in text


def test_no_change() -> None:
    assert judge(result(counts(50), counts(50))).text == (
        "These rules would do the same as the rules in force, with all 100 requests."
    )


def test_hits_misses_and_others_are_the_requests() -> None:
    row = counts({"low": 10, "likely": None, "high": 30}, other=20)
    misses = bound_misses(row)
    assert misses == {"low": 50, "likely": None, "high": 70}
    assert row["hits"]["low"] + misses["high"] + count_others(row) == row["requests"]
    assert row["hits"]["high"] + misses["low"] + count_others(row) == row["requests"]
