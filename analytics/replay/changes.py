"""The change of a count from the rules in force to the replayed rules, with bounds of its own."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from analytics.replay.judgement import NOT_CACHED, UNCOUNTED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_NOTHING: Final = {"low": 0, "likely": 0, "high": 0}
#: Counts for a rule that a ruleset does not have.
_NO_COUNTS: Final = {
    **dict.fromkeys(("hits", "savedMs"), _NOTHING),
    "risk": {"low": 0, "high": 0},
    **dict.fromkeys(("requests", *NOT_CACHED, *UNCOUNTED), 0),
}

#: Bounds of a count, from the counts of a rule or of all.
Measure: TypeAlias = "Callable[[Mapping[str, Any]], Mapping[str, Any]]"
#: The counts of a rule under the replayed rules, and under the rules in force.
Pair: TypeAlias = "tuple[Mapping[str, Any], Mapping[str, Any]]"


def pair_rules(result: Mapping[str, Any]) -> dict[str | None, Pair]:
    """Return the counts of each rule, of the replayed rules first. No id: requests without a rule."""
    after, before = (
        {counts["ruleId"]: counts for counts in side["rules"]} for side in (result, result["against"])
    )
    none = {"ruleId": None, **_NO_COUNTS}
    return {rule_id: (after.get(rule_id, none), before.get(rule_id, none)) for rule_id in {**after, **before}}


def change_of(measure: Measure, pair: Pair) -> dict[str, Any]:
    """Return the change of a count of one rule.

    A rule whose counts stay the same does the same, whatever the hidden literals are. For any other rule,
    nothing says that the truth is at the same place between the bounds before and after. A count without a
    likely value is counted in two ways, and changes by each of them.
    """
    after, before = (measure(counts) for counts in pair)
    if pair[0] == pair[1]:
        return {name: None if after[name] is None else 0 for name in after}
    if "likely" not in after:
        low, high = sorted((after["low"] - before["low"], after["high"] - before["high"]))
        return {"low": low, "high": high}
    return _limit(after, before, low=after["low"] - before["high"], high=after["high"] - before["low"])


def change_of_all(measure: Measure, result: Mapping[str, Any], pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the change of a count of all rules together."""
    total = result["total"], result["against"]["total"]
    after, before = (measure(counts) for counts in total)
    if "likely" not in after:
        return change_of(measure, total)
    changes = [change_of(measure, pair) for pair in pairs]
    low, high = (sum(change[name] for change in changes) for name in ("low", "high"))
    return _limit(after, before, low=low, high=high)


def gain_of(result: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the changes that a replay's result (as JSON) promises."""
    pairs = list(pair_rules(result).values())
    return {name: change_of_all(itemgetter(name), result, pairs) for name in ("hits", "savedMs", "risk")}


def _limit(after: Mapping[str, Any], before: Mapping[str, Any], *, low: float, high: float) -> dict[str, Any]:
    if after["likely"] is None or before["likely"] is None:
        return {"low": low, "likely": None, "high": high}
    return {"low": low, "likely": min(max(after["likely"] - before["likely"], low), high), "high": high}
