"""Say what to keep in mind about a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.replay.caveats import Caveat, say_caveat
from analytics.replay.judgement import UNCOUNTED, count_requests, middle, say_about
from analytics.replay.left_out import say_left_out
from tenantadmin.lib.core.formats import count, number, percent

if TYPE_CHECKING:
    from collections.abc import Mapping


def say_notes(result: Mapping[str, Any]) -> list[str]:
    """Say how far a replay agrees with the log, which requests it does not count, and its caveats."""
    then = result["total"]
    # The judgement says why.
    if not then["requests"]:
        return []
    uncounted = sum(then[name] for name in UNCOUNTED)
    counted = (
        f"Of all {count(then['requests'], 'request')}, {number(count_requests(then))} are hits, misses or "
        f"not cached, as in the table. The other {number(uncounted)} would have waited, been refused or "
        "failed. A rule that does not change has other numbers where another rule takes its requests or ends "
        "its results."
    )
    expiry = (
        "Results that are stored at other times expire at other times: so some hits become misses, also "
        "where results stay fresh for longer."
    )
    loses = any((it["from"], it["to"]) == ("HIT", "MISS") for it in result["moved"])
    return [
        _say_agreement(result),
        counted,
        *([expiry] if loses else []),
        *(
            say_left_out(result["window"]) if code == Caveat.DAYS_LEFT_OUT else say_caveat(code)
            for code in result["caveats"]
        ),
    ]


def _say_agreement(result: Mapping[str, Any]) -> str:
    """Say how far the replay agrees with the log, and why “was” differs from the log."""
    calibration, against = result["calibration"], result["against"]
    logged, replayed = (
        sum(rule["hits"][side] for rule in calibration["rules"]) for side in ("logged", "replayed")
    )
    text = (
        f"The log, and so the overview, has {count(logged, 'hit')} in "
        f"{count(calibration['rows'], 'request')}. A replay of the rules that were in force agrees with it "
        f"for {percent(calibration['share'])} of them."
    )
    was = against["total"]["hits"]
    if round(middle(was)) == logged:
        return text
    seq = against.get("seq")
    before = "the rules in force now" if seq is None else f"revision {seq}"
    why = (
        f"what {before} would have done on all days; on some of them, other rules were in force"
        if was["low"] != replayed
        else f"what a replay of {before} says"
    )
    return f"{text} “was” ({say_about(was)}{count(round(middle(was)), 'hit')}) is {why}."
