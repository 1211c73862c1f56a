"""Say what rules would change in figures: REST, the dashboard and the staff pages show the same."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from msgspec import Meta

from analytics.replay.changes import gain_of
from analytics.replay.judgement import NO_WAITING, middle
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
        figures.insert(0, _bill(billed, gain.get("money")))
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
    gain = {**gain_of(result), **result.get("billed", {}).get("gain", {})}
    return figures_of(gain, time=time_of(purpose))


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
    """Return the figure of a change. ``is_good`` if more is good."""
    text, note = say_change(bounds, show, less=less, unit=unit)
    centre = middle(bounds)
    return Figure(name=name, text=text, note=note, is_bad=centre < 0 if is_good else centre > 0)


def say_change(
    bounds: Mapping[str, Any], show: Callable[[Any], str], *, less: str = "less", unit: str = ""
) -> tuple[str, str | None]:
    """Say a change, and the bounds of a likely one. ``less`` is the word for less of it."""
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

    if low == high:
        return say(low), None
    if likely is None or say_bounds().startswith("≈"):
        return say_bounds(), None
    return f"≈ {say(likely)}" if likely else say(0), f"bounds: {say_bounds()}"
