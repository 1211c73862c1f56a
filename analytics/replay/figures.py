"""What rules change, in figures: REST and the dashboard show the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta

from tenantadmin.lib.core import formats
from tenantadmin.lib.core.structs import JsonStruct

#: What a request can end as that is not cached.
NOT_CACHED: Final = ("bypassed", "passed")
#: What a request can end as that counts nowhere, as in docs/words.md.
UNCOUNTED: Final = ("holds", "blocked", "errors", "invalidationErrors")
#: The purpose of recommendations that save waiting time of users, and no warehouse time.
NO_WAITING: Final = "no waiting"


def middle(bounds: Mapping[str, Any]) -> float:
    """Return the likely value, or the mean of the bounds."""
    likely: float | None = bounds.get("likely")
    return (bounds["low"] + bounds["high"]) / 2 if likely is None else likely


def bounds_of(counts: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the bounds of a count by its name in JSON. In a sample, the estimate is the likely value."""
    value = counts[name]
    bounds = value if isinstance(value, dict) else {"low": value, "likely": value, "high": value}
    if sampled := counts.get("sampled"):
        return {**sampled[name], "likely": round(middle(bounds))}
    return bounds


def count_not_cached(counts: Mapping[str, Any]) -> int:
    """Return how many requests no rule cached."""
    return sum(counts[name] for name in NOT_CACHED)


def count_requests(counts: Mapping[str, Any]) -> int:
    """Return how many requests are hits, misses or not cached."""
    requests: int = counts["requests"] - count_others(counts)
    return requests


def count_others(counts: Mapping[str, Any]) -> int:
    """Return how many log entries count as no request: they wait, are refused or fail."""
    return sum(counts[name] for name in UNCOUNTED)


def bound_misses(counts: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the bounds of the misses: each hit fewer is a miss more.

    So hits, misses and requests that are not cached add up to the requests.
    """
    hits = counts["hits"]
    most = count_requests(counts) - count_not_cached(counts)
    low, likely, high = (
        None if hits[name] is None else max(most - hits[name], 0) for name in ("high", "likely", "low")
    )
    return {"low": low, "likely": likely, "high": high}


def hit_rate(counts: Mapping[str, Any]) -> float | None:
    """Return the likely share of hits in hits, misses and requests that are not cached."""
    requests = count_requests(counts)
    return middle(counts["hits"]) / requests if requests else None


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


def _change_of_sample(
    change: dict[str, Any], result: Mapping[str, Any], name: str, rule_id: str | None, *, is_total: bool
) -> dict[str, Any]:
    """Return the change of a count (its name in JSON) with the bounds of a sample, if the replay has one.

    A sample that shows no change in a rule gives no other bounds.
    """
    changes = result.get("sampledChanges")
    if not changes or not (name and (change["low"] or change["high"])):
        return change
    found = (
        changes["total"]
        if is_total
        else next(one["changes"] for one in changes["rules"] if one["ruleId"] == rule_id)
    )
    return {**found[name], "likely": round(middle(change))}


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
    return {
        name: _change_of_sample(
            change_of_all(itemgetter(name), result, pairs), result, name, None, is_total=True
        )
        for name in ("hits", "savedMs", "risk")
    }


def _limit(after: Mapping[str, Any], before: Mapping[str, Any], *, low: float, high: float) -> dict[str, Any]:
    if after["likely"] is None or before["likely"] is None:
        return {"low": low, "likely": None, "high": high}
    return {"low": low, "likely": min(max(after["likely"] - before["likely"], low), high), "high": high}


#: What the time is that rules save, if it is not the waiting time of users.
WAREHOUSE_TIME: Final = "Warehouse time"
_Number: TypeAlias = float | Decimal


class Figure(JsonStruct):
    """What rules change, for people to read. No figure has a sign: words say whether it is more or less."""

    component = "ReplayFigure"

    name: str
    text: Annotated[str, Meta(description="`≈ 50 more`, `2.09 USD less`, `from 3 fewer to 5 more`.")]
    note: Annotated[
        str | None, Meta(description="The bounds of a likely number: `bounds: 40 to 60 more`.")
    ] = None
    is_bad: Annotated[bool, Meta(description="True if it speaks against the rules.")]


def figures_of(gain: Mapping[str, Any], *, time: str = WAREHOUSE_TIME) -> list[Figure]:
    """Return the figures of a gain (``analytics.advice.measure.PredictedGain`` as JSON).

    ``time`` is whose time is saved.
    """
    saved = gain["savedMs"]
    likely = saved.get("likely")
    spent = {"low": -saved["high"], "likely": None if likely is None else -likely, "high": -saved["low"]}
    figures = [
        _figure(time, spent, formats.duration),
        _figure("Hits", gain["hits"], formats.number, less="fewer", is_good=True),
        _figure("Hits at risk of being stale", gain["risk"], formats.number, less="fewer"),
    ]
    if billed := gain.get("billedMs"):
        text, note = describe_bill(billed, money := gain.get("money"))
        centre = sum(Decimal(value) for name, value in (money or billed).items() if name in {"low", "high"})
        figures.insert(0, Figure(name="On the bill", text=text, note=note, is_bad=centre > 0))
    return figures


def time_of(purpose: str) -> str:
    """Return what the time is that rules save, by what their recommendation is good for."""
    return "Waiting time" if purpose == NO_WAITING else WAREHOUSE_TIME


def figures_of_replay(result: Mapping[str, Any], *, purpose: str = "") -> list[Figure]:
    """Return the figures of a replay's result (as JSON): none if it has no request.

    ``purpose`` is what the recommendation of these rules is good for, if there is one.
    """
    if not result["total"]["requests"]:
        return []
    # Not of a sample, and not of earlier releases.
    billed = result.get("billed") or {"gain": {}}
    gain = {**gain_of(result), **billed["gain"]}
    return figures_of(gain, time=time_of(purpose))


def describe_bill(billed: Mapping[str, Any], money: Mapping[str, Any] | None) -> tuple[str, str | None]:
    """Say a change of the bill (``billedMs`` of a gain, and its money), and the bounds of a likely one."""
    if not money:
        return describe_change(billed, formats.duration)
    ends = {name: Decimal(money[name]) for name in ("low", "high")}
    return describe_change(ends, lambda value: f"{value:,f}", unit=f" {money['currency']}")


def _figure(
    name: str,
    bounds: Mapping[str, Any],
    show: Callable[[Any], str],
    *,
    less: str = "less",
    is_good: bool = False,
) -> Figure:
    """Return the figure of a change. ``is_good`` if more is good."""
    text, note = describe_change(bounds, show, less=less)
    centre = middle(bounds)
    return Figure(name=name, text=text, note=note, is_bad=centre < 0 if is_good else centre > 0)


def describe_change(
    bounds: Mapping[str, Any], show: Callable[[Any], str], *, less: str = "less", unit: str = ""
) -> tuple[str, str | None]:
    """Say a change, and the bounds of a likely one. ``less`` is the word for less of it."""
    low, high, likely = bounds["low"], bounds["high"], bounds.get("likely")

    def describe(value: _Number) -> str:
        return f"{show(abs(value))}{unit} {'more' if value > 0 else less}" if value else "no change"

    def describe_bounds() -> str:
        if low < 0 < high:
            return f"from {describe(low)} to {describe(high)}"
        least, most = sorted((abs(low), abs(high)))
        if show(least) == show(most):
            return f"≈ {describe(low or high)}"
        return f"{show(least) if least else '0'} to {describe(low if low < 0 else high)}"

    if low == high:
        return describe(low), None
    if likely is None or describe_bounds().startswith("≈"):
        return describe_bounds(), None
    return f"≈ {describe(likely)}" if likely else describe(0), f"bounds: {describe_bounds()}"


class ReplayCount(JsonStruct):
    """A count under the replayed rules, for people to read."""

    name: str
    text: Annotated[str, Meta(description="`5,601`, `≈ 5,601`, `54 to 63`.")]
    note: Annotated[
        str | None,
        Meta(
            description="How the rules change it, in the words of `figures`; else its bounds, if it has any."
        ),
    ] = None


class ReplayRow(JsonStruct):
    """The counts of one rule, or of all."""

    rule_id: Annotated[str | None, Meta(description="Null: requests without a rule, or all.")]
    name: Annotated[str | None, Meta(description="At the time of the replay, if it is known; or `All`.")]
    is_changed: Annotated[bool, Meta(description="True if a count changes.")]
    counts: list[ReplayCount]


def _exactly(count: Callable[[Mapping[str, Any]], int]) -> Measure:
    def measure(counts: Mapping[str, Any]) -> dict[str, int]:
        return dict.fromkeys(("low", "likely", "high"), count(counts))

    return measure


#: Each count: its title, its name in JSON if a sample gives it bounds, how it is found and shown, and the
#: word for less of it.
_COUNTS: Final[tuple[tuple[str, str, Measure, Callable[[Any], str], str], ...]] = (
    ("Requests", "", _exactly(count_requests), formats.number, "fewer"),
    ("Hits", "hits", itemgetter("hits"), formats.number, "fewer"),
    ("Misses", "misses", bound_misses, formats.number, "fewer"),
    ("Not cached", "", _exactly(count_not_cached), formats.number, "fewer"),
    ("Waited, failed or refused", "", _exactly(count_others), formats.number, "fewer"),
    ("Warehouse time saved", "savedMs", itemgetter("savedMs"), formats.duration, "less"),
    ("Hits at risk of being stale", "risk", itemgetter("risk"), formats.number, "fewer"),
)


def rows_of_replay(result: Mapping[str, Any], names: Mapping[str, str]) -> list[ReplayRow]:
    """Return all counts together, then the counts of each rule; nothing if the replay has no request.

    Requests are hits, misses and what is not cached; with what waited, failed or was refused, they are the
    same log entries before and after.
    """
    if not result["total"]["requests"]:
        return []
    pairs = pair_rules(result)

    def row(rule_id: str | None, name: str | None, after: Mapping[str, Any], change: Any) -> ReplayRow:
        counts, is_changed = [], False
        for title, count, measure, show, less in _COUNTS:
            bounds = bounds_of(after, count) if count and "sampled" in after else measure(after)
            by = _change_of_sample(change(measure), result, count, rule_id, is_total=after is result["total"])
            text, _, note = formats.between(bounds, show).partition(" (")
            if by["low"] or by["high"]:
                is_changed = True
                text_of_change, limits = describe_change(by, show, less=less)
                note = f"{text_of_change}; {limits}" if limits else text_of_change
            counts.append(ReplayCount(name=title, text=text, note=note.removesuffix(")") or None))
        return ReplayRow(rule_id=rule_id, name=name, is_changed=is_changed, counts=counts)

    return [
        row(
            None, "All", result["total"], lambda measure: change_of_all(measure, result, list(pairs.values()))
        ),
        *(
            row(
                rule_id,
                names.get(rule_id or ""),
                pair[0],
                lambda measure, pair=pair: change_of(measure, pair),
            )
            for rule_id, pair in pairs.items()
        ),
    ]
