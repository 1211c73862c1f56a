"""Say what to keep in mind about a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.replay.caveats import Caveat, say_caveat
from analytics.replay.changes import pair_rules
from analytics.replay.judgement import count_others, count_requests, middle, say_about
from analytics.replay.left_out import say_left_out
from logs.definitions import HIT, STORED_MISS
from tenantadmin.lib.core.formats import count, number, percent

if TYPE_CHECKING:
    from collections.abc import Mapping


def say_notes(result: Mapping[str, Any]) -> list[str]:
    """Say how far a replay agrees with the log, what counts as a request, and its caveats."""
    then = result["total"]
    # The judgement says why.
    if not then["requests"]:
        return []
    counted = (
        f"With these rules, {number(count_requests(then))} of these log entries are requests: hits, misses "
        f"or not cached. The other {number(count_others(then))} wait, are refused or fail."
    )
    changed = sum(after != before for after, before in pair_rules(result).values())
    others = "A changed rule changes other rules too, if it decides their requests or ends their results."
    expiry = (
        "Results that are stored at other times expire at other times: so some hits become misses, also "
        "where results stay fresh for longer."
    )
    loses = any(it["from"] in HIT and it["to"] in STORED_MISS for it in result["moved"])
    return [
        _say_agreement(result),
        counted,
        *([others] if changed > 1 else []),
        *([expiry] if loses else []),
        *(
            say_left_out(result["window"]) if code == Caveat.DAYS_LEFT_OUT else say_caveat(code)
            for code in result["caveats"]
        ),
    ]


def _say_agreement(result: Mapping[str, Any]) -> str:
    """Say how far the replay agrees with the log, and why it compares with other hits than the log has."""
    calibration, against = result["calibration"], result["against"]
    logged, replayed = (
        sum(rule["hits"][side] for rule in calibration["rules"]) for side in ("logged", "replayed")
    )
    # Absent in replays of earlier releases.
    requests = calibration.get("requests")
    of = f" in {count(requests['logged'], 'request')}" if requests else ""
    text = (
        f"The log of these days has {count(logged, 'hit')}{of}, as the overview has. A replay of the rules "
        f"that were in force ends as in the log for {percent(calibration['share'])} of "
        f"{count(calibration['rows'], 'log entry', 'log entries')}; these also have what waited, was refused "
        "or failed."
    )
    was = against["total"]["hits"]
    if round(middle(was)) == logged:
        return text
    seq = against.get("seq")
    before = "the rules in force now" if seq is None else f"revision {seq}"
    hits = f"{say_about(was)}{count(round(middle(was)), 'hit')}"
    if was["low"] == replayed:
        return f"{text} The changes compare with a replay of {before} ({hits})."
    return (
        f"{text} The changes compare with {before} on all days ({hits}); on some of them, other rules were "
        "in force."
    )
