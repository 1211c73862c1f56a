"""What a replay means, in words and figures: its judgement, its notes, and a table whose rows add up."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from analytics.replay.figures import (
    NOT_CACHED,
    UNCOUNTED,
    bound_misses,
    count_not_cached,
    count_requests,
    figures_of,
    figures_of_replay,
    rows_of_replay,
)
from analytics.replay.words import Outdated, describe_days, describe_left_out, describe_notes, judge

MS = 60_000

WINDOW = {"from": "2026-02-26", "to": "2026-03-04", "daysLeftOut": [], "emptyColumns": {}}


def counts(hits: Any, saved: int = 0, *, bypassed: int = 0, risk: int = 0) -> dict[str, Any]:
    """Return the counts of 100 requests."""
    bounds = hits if isinstance(hits, dict) else {"low": hits, "likely": hits, "high": hits}
    return {
        "requests": 100,
        "hits": bounds,
        "savedMs": {"low": saved, "likely": None, "high": saved},
        "risk": {"low": 0, "high": risk},
        **dict.fromkeys((*NOT_CACHED, *UNCOUNTED), 0),
        "bypassed": bypassed,
        "spentMs": 10 * MS,
    }


def result(then: dict[str, Any], now: dict[str, Any], grade: str = "good") -> dict[str, Any]:
    rules = [{"ruleId": "new", **then}, {"ruleId": "old", **counts(0)}]
    against = {"total": now, "rules": [{"ruleId": "new", **now}]}
    best, worst = {"extraMs": 20_000, "extraMisses": 17}, {"extraMs": 50_000, "extraMisses": 9}
    calibration, cost = {"grade": grade}, {"best": best, "byHour": [best, worst]}
    shown = {
        "window": WINDOW,
        "total": then,
        "rules": rules,
        "against": against,
        "names": {"new": "New reports"},
    }
    more: dict[str, Any] = {"moved": [], "caveats": []}
    return {**shown, "calibration": calibration, "publishCost": cost, **more}


CALIBRATION = {"grade": "good", "share": 0.9999, "rows": 100, "rules": []}

#: Six hits more than 50.
FEW_MORE = 56


@pytest.mark.parametrize(
    ("then", "now", "tone", "advice"),
    [
        (counts(60, 2 * MS), counts(50, MS), "good", "Publish them."),
        (
            counts(60, MS + 50_000),
            counts(50, MS),
            "warn",
            "Publish them in an hour in which little is lost: emptying the cache costs from 20 s to 50 s of",
        ),
        (counts(50, MS), counts(60, 2 * MS), "bad", "Keep the present rules, unless"),
        (counts(60, MS), counts(50, 2 * MS), "warn", "It gains on one side and loses on the other"),
        (counts(60, MS, risk=9), counts(50, 0), "warn", "Publish them if results as old as that"),
        (
            counts(60, MS + 9),
            counts(50, MS),
            "warn",
            "Publish them with other changes: emptying the cache costs at least 17 requests and 20 s of",
        ),
        # A day of warehouse time, of which the rules spare less than a thousandth.
        (
            counts(FEW_MORE, MS) | {"requests": 10_000, "spentMs": 1440 * MS},
            counts(50) | {"requests": 10_000},
            "warn",
            "That hardly changes anything. Publish them with other changes",
        ),
        (
            counts(FEW_MORE, 2 * MS) | {"requests": 10_000, "spentMs": 1440 * MS},
            counts(50) | {"requests": 10_000},
            "good",
            "Publish them.",
        ),
        (counts(50, MS), counts(50, MS), "warn", "Publishing would only empty the cache."),
    ],
)
def test_what_to_do_next(then: dict[str, Any], now: dict[str, Any], tone: str, advice: str) -> None:
    judged = judge(result(then, now))
    assert (judged.tone, judged.next.startswith(advice)) == (tone, True)


def test_a_replay_that_differs_from_the_log_decides_nothing() -> None:
    judged = judge(result(counts(60, 2 * MS), counts(50, MS), "poor"))
    assert (judged.tone, judged.next[:21]) == ("bad", "Do not decide by this")


@pytest.mark.parametrize(("becomes", "says_why"), [("MISS", True), ("BYPASS", False)])
def test_the_notes_say_why_hits_become_misses_where_some_do(becomes: str, says_why: bool) -> None:
    shown = result(counts(60), counts(50))
    notes = describe_notes(shown | {"calibration": CALIBRATION, "moved": [{"from": "HIT", "to": becomes}]})
    assert any("so some hits become misses" in note for note in notes) is says_why


@pytest.mark.parametrize(
    ("empty", "why"),
    [
        (None, "the log has no usable entries"),
        ({}, "there is no log, or it is not built yet"),
        (["userAgent"], "no log entry shows the client application, and the rules ask for that"),
        (
            ["isReadOnly", "referer", "userName"],
            "no log entry shows whether it only reads, the referer and the user, and the rules ask for that",
        ),
    ],
)
def test_days_that_are_left_out_are_named_with_the_reason(empty: Any, why: str) -> None:
    days = ["2026-02-25", "2026-02-27", "2026-02-28", "2026-03-01", "2026-03-03"]
    window = WINDOW | {"daysLeftOut": days, "emptyColumns": dict.fromkeys(days, empty) if empty else empty}
    named = "Wednesday, 25 February; 27 February to 1 March; Tuesday, 3 March were left out"
    assert describe_left_out(window) == f"{named}: {why}. The figures are of the other 3 days."
    assert describe_days(window) == "3 of the 7 days 26 February to 4 March"
    # The day before fills the cache only.
    warm_up = WINDOW | {"daysLeftOut": days[:1]}
    assert describe_left_out(warm_up) == (
        "Wednesday, 25 February was left out: there is no log, or it is not built yet."
    )
    assert describe_days(warm_up) == "26 February to 4 March"
    replayed = result(counts(60, MS), counts(50)) | {"window": window}
    assert "from the cache (of 100 on 3 of 7 days)" in judge(replayed).text


def test_a_replay_of_no_request_says_why() -> None:
    nothing = counts(0) | {"requests": 0}
    days = [f"2026-02-{day}" for day in (26, 27, 28)] + [f"2026-03-0{day}" for day in (1, 2, 3, 4)]
    window = WINDOW | {"daysLeftOut": days}
    judged = judge(result(nothing, nothing, "poor") | {"window": window})
    assert judged.text == (
        "No request was replayed. 26 February to 4 March were left out: there is no log, or it is not built "
        "yet. So there are no figures."
    )
    assert (judged.tone, judged.next) == ("bad", "Replay other days.")
    assert describe_notes(result(nothing, nothing)) == []


@pytest.mark.parametrize(
    ("was", "replayed", "why"),
    [
        (50, 50, ""),
        (55, 50, "revision 3 on all days (55 hits); on some of them, other rules were in force."),
        ({"low": 49, "likely": 52, "high": 60}, 49, "a replay of revision 3 (about 52 hits)."),
    ],
)
def test_the_notes_say_why_the_log_has_other_hits(was: Any, replayed: int, why: str) -> None:
    hits = {"logged": 50, "replayed": replayed}
    requests = {"logged": 110, "replayed": 100}
    calibration = CALIBRATION | {"rows": 120, "rules": [{"hits": hits}], "requests": requests}
    then = counts(60) | {"requests": 120, "holds": 20}
    shown = result(then, counts(was)) | {"calibration": calibration}
    shown["against"]["seq"] = 3
    agrees, counted, *_ = describe_notes(shown)
    text, _, because = agrees.partition("; these also have what waited, was refused or failed.")
    assert text == (
        "The log of these days has 50 hits in 110 requests, as the overview has. A replay of the rules that "
        "were in force ends as in the log for >99.9% of 120 log entries"
    )
    assert because == (f" The changes compare with {why}" if why else "")
    assert counted == (
        "With these rules, 100 of these log entries are requests: hits, misses or not cached. The other 20 "
        "wait, are refused or fail."
    )


@pytest.mark.parametrize("can_repeat", [True, False])
def test_a_replay_of_earlier_rules_does_not_advise_to_publish(can_repeat: bool) -> None:
    outdated = Outdated(
        ["of an earlier text of the draft", "against revision 3, not the rules in force"], can_repeat
    )
    judged = judge(result(counts(60, 2 * MS), counts(50, MS)), outdated=outdated)
    assert judged.text.startswith(
        "This replay is of an earlier text of the draft, and against revision 3, not the rules in force. "
    )
    assert (judged.tone, judged.is_outdated) == ("warn", True)
    assert judged.next == (
        "Replay it again before you decide."
        if can_repeat
        else "To replay these rules again, make a draft of them."
    )


def test_a_gain() -> None:
    assert judge(result(counts(60, 2 * MS, risk=3), counts(50, MS))).text == (
        "These rules would answer 10 more requests from the cache (of 100) and spare the warehouse 1 min; "
        "hit rate 50.0% → 60.0%. Most of it is due to the rule “New reports”. "
        "Up to 3 more hits may be older than a change of their tables."
    )


def test_the_hit_rate_is_of_hits_misses_and_requests_that_are_not_cached() -> None:
    then, now = counts({"low": 40, "likely": 44, "high": 50}), counts(36, bypassed=40)
    text = judge(result({**then, "requests": 110, "holds": 10}, {**now, "requests": 110, "errors": 10})).text
    assert "answer about 8 more requests from the cache (of 100) and spare no more warehouse time" in text
    assert text.endswith("hit rate 36.0% → 44.0%. Most of it is due to the rule “New reports”.")


LEAK = {"ruleId": "c", "ruleName": "Customer records", "statements": 1, "users": 10}


def test_closing_a_leak_is_said_first_with_what_it_costs() -> None:
    replayed = result(counts(40, MS), counts(50, 2 * MS), "poor") | {"leaks": {"ended": [LEAK], "begun": []}}
    judged = judge(replayed)
    assert judged.text == (
        "One statement of Customer records served 10 users the results of others. With these rules, each "
        "user gets their own. That costs 10 hits and 1 min of warehouse time; hit rate 50.0% → 40.0%."
    )
    assert (judged.tone, judged.next) == ("warn", "Publish them: that closes the leak.")


def test_a_leak_that_would_begin_outweighs_every_gain() -> None:
    leaks = {"ended": [], "begun": [LEAK, LEAK | {"ruleName": "Payroll", "users": 3}]}
    judged = judge(result(counts(60, 2 * MS), counts(50, MS)) | {"leaks": leaks})
    assert judged.text.startswith(
        "2 statements of Customer records and Payroll would serve 10 users the results of others. These rules"
    )
    assert (judged.tone, judged.next[:20]) == ("bad", "Do not publish them:")


def test_a_recommendation_is_judged_by_its_purpose() -> None:
    replayed = result(counts(40, MS), counts(50, 2 * MS))
    assert judge(replayed, purpose="less stored").next.startswith("Their purpose is “less stored”")
    fresher = judge(result(counts(40, MS), counts(50, 2 * MS, risk=3)), purpose="fresh results")
    assert fresher.text.endswith("Up to 3 fewer hits may be older than a change of their tables.")
    assert (fresher.tone, fresher.next) == ("warn", "Publish them if fresh results are worth that.")


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        ("-1.30", "0.00", "What you pay would fall by 0 to 1.30 USD."),
        ("0.50", "0.50", "What you pay would rise by 0.50 USD."),
        ("-1.00", "1200.00", "What you pay: from 1.00 USD less to 1,200.00 USD more."),
        ("0.00", "0.00", "What you pay would stay the same."),
    ],
)
def test_it_says_what_is_money(low: str, high: str, text: str) -> None:
    billed = {"gain": {"money": {"currency": "USD", "low": low, "high": high}}}
    assert judge(result(counts(60, 2 * MS), counts(50, MS)) | {"billed": billed}).text.endswith(text)


def test_users_wait_less_where_the_warehouse_runs_as_often() -> None:
    waits = judge(result(counts(60, 2 * MS), counts(50, MS)), purpose="no waiting")
    assert "spare users" in waits.text
    assert "of waiting" in waits.text


def test_no_change() -> None:
    assert judge(result(counts(50), counts(50))).text == (
        "These rules would do the same as the rules in force, with all 100 requests."
    )


def test_hits_misses_and_requests_that_are_not_cached_are_the_requests() -> None:
    row = counts({"low": 10, "likely": None, "high": 30}, bypassed=20) | {"requests": 105, "blocked": 5}
    misses = bound_misses(row)
    assert misses == {"low": 50, "likely": None, "high": 70}
    assert row["hits"]["low"] + misses["high"] + count_not_cached(row) == count_requests(row)
    assert row["hits"]["high"] + misses["low"] + count_not_cached(row) == count_requests(row)


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
    assert [(one.text, one.note) for one in figures_of_replay(result)] == [
        ("≈ 5 s less", "bounds: 4 s to 6 s less"),
        # 5 less 16, and 21 less 15. The rule that stays the same widens nothing.
        ("from 11 fewer to 6 more", None),
        ("no change", None),
    ]
    result["billed"] = {"gain": {"billedMs": {"low": -60_000, "high": -60_000}, "money": None}}
    assert next((one.name, one.text) for one in figures_of_replay(result)) == ("On the bill", "1 min less")
    # As the card of the recommendation, which saves no warehouse time.
    assert figures_of_replay(result, purpose="no waiting")[1].name == "Waiting time"
    result["total"]["requests"] = 0
    assert figures_of_replay(result) == []


def rule_counts(requests: int, hits: tuple[int, int | None, int], **others: Any) -> dict[str, Any]:
    low, likely, high = hits
    saved = bounds(1000 * low, likely and 1000 * likely, 1000 * high)
    return counts(bounds(*hits)) | {"requests": requests, "savedMs": saved, **others}


def replayed(after: dict[str, Any], before: dict[str, Any], **same: Any) -> dict[str, Any]:
    """Return a result: a rule that changes, and one that stays the same."""
    other = {"ruleId": "same", **rule_counts(10, (1, 2, 3))}

    def side(changed: dict[str, Any]) -> dict[str, Any]:
        total = {
            name: {end: None if value[end] is None else value[end] + other[name][end] for end in value}
            if isinstance(value, dict)
            else value + other[name]
            for name, value in changed.items()
        }
        return {"total": total, "rules": [{"ruleId": "longer", **changed}, other]}

    return {**side(after), "against": side(before), **same}


def test_cards_and_table_show_the_same_change() -> None:
    # Of the same 100 log entries, fewer wait.
    after = rule_counts(100, (50, 56, 60), holds=4, bypassed=6, risk={"low": 54, "high": 63})
    before = rule_counts(100, (30, 33, 40), holds=9, bypassed=6, risk={"low": 29, "high": 36})
    result = replayed(after, before)
    total, changed, same = rows_of_replay(result, {"longer": "Longer"})
    assert [(row.rule_id, row.name, row.is_changed) for row in (total, changed, same)] == [
        (None, "All", True),
        ("longer", "Longer", True),
        ("same", None, False),
    ]
    assert [(one.name, one.text, one.note) for one in total.counts] == [
        ("Requests", "106", "5 more"),
        ("Hits", "≈ 58", "≈ 23 more; bounds: 10 to 30 more"),
        ("Misses", "≈ 42", "≈ 18 fewer; bounds: 5 to 25 fewer"),
        ("Not cached", "6", None),
        ("Waited, failed or refused", "4", "5 fewer"),
        ("Warehouse time saved", "≈ 58 s", "≈ 23 s more; bounds: 10 s to 30 s more"),
        ("Hits at risk of being stale", "54 to 63", "25 to 27 more"),
    ]
    cards = {one.name: "; ".join(filter(None, (one.text, one.note))) for one in figures_of_replay(result)}
    shown = {one.name: one.note for one in total.counts}
    assert {name: cards[name] for name in ("Hits", "Hits at risk of being stale")} == {
        name: shown[name] for name in ("Hits", "Hits at risk of being stale")
    }
    # The rule that stays the same shows the bounds of its rule_counts.
    assert [(one.text, one.note) for one in same.counts[1:3]] == [("≈ 2", "1 to 3"), ("≈ 8", "7 to 9")]


def test_a_new_rule_and_a_removed_rule_have_all_their_counts_as_change() -> None:
    result = replayed(rule_counts(10, (4, 4, 4)), rule_counts(10, (4, 4, 4)))
    result["rules"][0]["ruleId"] = "new"
    rows = {row.rule_id: row for row in rows_of_replay(result, {})}
    assert [(one.text, one.note) for one in rows["new"].counts[:2]] == [("10", "10 more"), ("4", "4 more")]
    assert [(one.text, one.note) for one in rows["longer"].counts[:2]] == [
        ("0", "10 fewer"),
        ("0", "4 fewer"),
    ]
    assert rows[None].is_changed is False


def test_a_replay_of_no_request_has_no_table() -> None:
    nothing = rule_counts(0, (0, 0, 0))
    assert rows_of_replay({"total": nothing, "rules": [], "against": {}}, {}) == []
