"""The table of a replay: what it shows adds up, and says the same as the figures."""

from __future__ import annotations

from typing import Any

from analytics.replay.figures import NOT_CACHED, UNCOUNTED, figures_of_replay, rows_of_replay


def counts(requests: int, hits: tuple[int, int | None, int], **others: Any) -> dict[str, Any]:
    low, likely, high = hits
    return {
        "requests": requests,
        "hits": {"low": low, "likely": likely, "high": high},
        "savedMs": {"low": 1000 * low, "likely": likely and 1000 * likely, "high": 1000 * high},
        "risk": {"low": 0, "high": 0},
        **dict.fromkeys((*NOT_CACHED, *UNCOUNTED), 0),
        **others,
    }


def replayed(after: dict[str, Any], before: dict[str, Any], **same: Any) -> dict[str, Any]:
    """Return a result: a rule that changes, and one that stays the same."""
    other = {"ruleId": "same", **counts(10, (1, 2, 3))}

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
    after = counts(100, (50, 56, 60), holds=4, bypassed=6, risk={"low": 54, "high": 63})
    before = counts(100, (30, 33, 40), holds=9, bypassed=6, risk={"low": 29, "high": 36})
    result = replayed(after, before)
    total, changed, same = rows_of_replay(result, {"longer": "Longer"})
    assert [(row.rule_id, row.name, row.is_changed) for row in (total, changed, same)] == [
        (None, "All", True),
        ("longer", "Longer", True),
        ("same", None, False),
    ]
    assert [(it.name, it.text, it.note) for it in total.counts] == [
        ("Requests", "106", "5 more"),
        ("Hits", "≈ 58", "≈ 23 more; bounds: 10 to 30 more"),
        ("Misses", "≈ 42", "≈ 18 fewer; bounds: 5 to 25 fewer"),
        ("Not cached", "6", None),
        ("Waited, failed or refused", "4", "5 fewer"),
        ("Warehouse time saved", "≈ 58 s", "≈ 23 s more; bounds: 10 s to 30 s more"),
        ("Hits at risk of being stale", "54 to 63", "25 to 27 more"),
    ]
    cards = {it.name: "; ".join(filter(None, (it.text, it.note))) for it in figures_of_replay(result)}
    shown = {it.name: it.note for it in total.counts}
    assert {name: cards[name] for name in ("Hits", "Hits at risk of being stale")} == {
        name: shown[name] for name in ("Hits", "Hits at risk of being stale")
    }
    # The rule that stays the same shows the bounds of its counts.
    assert [(it.text, it.note) for it in same.counts[1:3]] == [("≈ 2", "1 to 3"), ("≈ 8", "7 to 9")]


def test_a_new_rule_and_a_removed_rule_have_all_their_counts_as_change() -> None:
    result = replayed(counts(10, (4, 4, 4)), counts(10, (4, 4, 4)))
    result["rules"][0]["ruleId"] = "new"
    rows = {row.rule_id: row for row in rows_of_replay(result, {})}
    assert [(it.text, it.note) for it in rows["new"].counts[:2]] == [("10", "10 more"), ("4", "4 more")]
    assert [(it.text, it.note) for it in rows["longer"].counts[:2]] == [("0", "10 fewer"), ("0", "4 fewer")]
    assert rows[None].is_changed is False


def test_a_replay_of_no_request_has_no_table() -> None:
    nothing = counts(0, (0, 0, 0))
    assert rows_of_replay({"total": nothing, "rules": [], "against": {}}, {}) == []
