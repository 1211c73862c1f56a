"""Say what rules would change in figures: REST, the dashboard and the staff pages show the same."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from msgspec import Meta

from analytics.replay.judgement import middle
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: What the time is that rules save, if it is not the waiting time of users.
WAREHOUSE_TIME: Final = "Warehouse time"

_NOTHING: Final = {"low": 0, "high": 0}

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
        figures.insert(0, _bill(billed, gain.get("money")))
    return figures


def figures_of_replay(result: Mapping[str, Any]) -> list[Figure]:
    """Return the figures of a replay's result (as JSON): none if it has no request."""
    after, before = result["total"], result["against"]["total"]
    if not after["requests"]:
        return []
    gain = {name: _change_of(name, result) for name in ("hits", "savedMs")}
    risk = _subtract(after["risk"], before["risk"])
    return figures_of({**gain, "risk": risk, **result.get("billed", {}).get("gain", {})})


def _change_of(name: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the change of a count with its bounds.

    A rule whose counts stay the same does the same, whatever the hidden literals are. For any other rule,
    nothing says that the truth is at the same place between the bounds before and after.
    """
    after, before = (
        {counts["ruleId"]: counts for counts in side["rules"]} for side in (result, result["against"])
    )
    likely = _subtract(result["total"][name], result["against"]["total"][name])["likely"]
    low = high = 0
    for rule_id in {**before, **after}:
        then, now = after.get(rule_id), before.get(rule_id)
        if then != now:
            after_it, before_it = (_NOTHING if counts is None else counts[name] for counts in (then, now))
            low += after_it["low"] - before_it["high"]
            high += after_it["high"] - before_it["low"]
    return {"low": low, "likely": None if likely is None else min(max(likely, low), high), "high": high}


def _subtract(after: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    low, high = sorted((after["low"] - before["low"], after["high"] - before["high"]))
    is_likely = after.get("likely") is not None and before.get("likely") is not None
    return {"low": low, "likely": after["likely"] - before["likely"] if is_likely else None, "high": high}


def _bill(billed: Mapping[str, Any], money: Mapping[str, Any] | None) -> Figure:
    if not money:
        return _figure("On the bill", billed, formats.duration)
    ends = {name: Decimal(money[name]) for name in ("low", "high")}
    return _figure("On the bill", ends, lambda value: f"{value:,f}", unit=f" {money['currency']}")


def _figure(
    name: str,
    bounds: Mapping[str, Any],
    show: Callable[[Any], str],
    *,
    less: str = "less",
    unit: str = "",
    is_good: bool = False,
) -> Figure:
    """Return the figure of a change. ``less`` is the word for less of it; ``is_good`` if more is good."""
    low, high, likely = bounds["low"], bounds["high"], bounds.get("likely")

    def say(value: _Number) -> str:
        return f"{show(abs(value))}{unit} {'more' if value > 0 else less}" if value else "no change"

    def say_bounds() -> str:
        if low < 0 < high:
            return f"from {say(low)} to {say(high)}"
        least, most = sorted((abs(low), abs(high)))
        if show(least) == show(most):
            return f"≈ {say(low or high)}"
        return f"{show(least) if least else '0'} to {say(low if low < 0 else high)}"

    centre = middle(bounds)
    is_bad = centre < 0 if is_good else centre > 0
    if low == high:
        return Figure(name=name, text=say(low), is_bad=is_bad)
    if likely is None or say_bounds().startswith("≈"):
        return Figure(name=name, text=say_bounds(), is_bad=is_bad)
    return Figure(
        name=name,
        text=f"≈ {say(likely)}" if likely else say(0),
        note=f"bounds: {say_bounds()}",
        is_bad=is_bad,
    )
