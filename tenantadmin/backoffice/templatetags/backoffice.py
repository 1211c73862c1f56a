"""Template filters and tags of staff pages: times, numbers and charts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django import template
from django.conf import settings
from django.utils.html import format_html, json_script

from rules.wording import label_of, say
from tenantadmin.lib.core.timestamps import from_epoch_ms
from tenantadmin.lib.http.formats import moment

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Mapping

    from django.utils.safestring import SafeString

    from tenantadmin.lib.core.errors import ApiError

register = template.Library()

#: Sentences for the caveats of a replay; docs/replay.md has the same list.
_CAVEATS: Final = {
    "writes-past-gateway-invisible": "Writes past the Gateway are not in the log: the risk may be higher.",
    "literals-hidden": "The log hides literals of some statements, so hits have bounds.",
    "gateway-unknown": "What the Gateway declines by itself could not be learned: the bounds are wider.",
    "keys-per-user": "The Gateway of this log keeps users apart, also where the rules do not vary.",
    "days-left-out": "Some days were left out.",
    "cold-start": "The days before the window have no data: the cache starts cold.",
    "cache-disabled": "The configuration switches caching off: the Gateway declines every cache rule.",
    "calibration-fair": "The replay of the rules in force differs a little from the log.",
    "calibration-poor": "The replay of the rules in force differs much from the log: do not trust this.",
}


@register.filter
def caveat(code: str) -> str:
    """Return the sentence for a caveat of a replay, or the code if it is unknown."""
    return _CAVEATS.get(code, code)


@register.filter(name="say")
def say_on_page(text: str) -> str:
    """Return a message of the API in the words of the pages."""
    return say(text)


@register.filter
def told_details(error: ApiError) -> list[tuple[str | None, str, str]]:
    """Return label, place and message of each detail that says more than the error itself."""
    return [
        (label_of(detail.path), detail.path, say(detail.message))
        for detail in error.details
        if detail.message != error.text
    ]


register.filter(moment)


@register.filter
def day_of(milliseconds: int) -> str:
    """Show the day (UTC) of a log time in milliseconds since 1970."""
    return from_epoch_ms(milliseconds).date().isoformat()


@register.filter
def percent(value: float | None) -> str:
    """Show a share (0 to 1) as percent with one decimal place. Only all is 100 %, and only none is 0 %."""
    if value is None:
        return "-"
    if 0 < value < 0.0005:
        return "<0.1 %"
    if 0.9995 <= value < 1:
        return ">99.9 %"
    return f"{100 * value:.1f} %"


@register.filter
def points(value: float | None) -> str:
    """Show a difference of shares in percentage points, with its sign."""
    return "-" if value is None else f"{100 * value:+.1f} points"


@register.filter
def whole(value: float | None) -> str:
    """Show a number with thin spaces between thousands."""
    return "-" if value is None else f"{value:,.0f}".replace(",", "\u202f")


@register.filter
def duration(value: float | None) -> str:
    """Show milliseconds in the largest unit that fits."""
    if value is None:
        return "-"
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if abs(value) >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.0f} ms"


@register.filter
def seconds(value: float | None) -> str:
    """Show seconds in the largest unit that fits."""
    return duration(None if value is None else value * 1000)


@register.filter
def size(value: float | None) -> str:
    """Show bytes in the largest unit that fits."""
    if value is None:
        return "-"
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


@register.filter
def bounds(value: Mapping[str, Any] | None, unit: str = "whole") -> str:
    """Show a difference with its bounds, ``{low, likely?, high}``: "+40 to +60, likely +50".

    ``unit`` is ``whole`` or ``duration`` (milliseconds).
    """
    return _between(value, lambda number: change(number, unit))


@register.filter
def between(value: Mapping[str, Any], unit: str = "whole") -> str:
    """Show a number with its bounds, in the form of `bounds`."""
    return _between(value, duration if unit == "duration" else whole)


def _between(value: Mapping[str, Any] | None, show: Callable[[float | None], str]) -> str:
    if value is None:
        return "-"
    low, high, likely = (show(value.get(name)) for name in ("low", "high", "likely"))
    if low == high:
        return low
    return f"{low} to {high}" + ("" if value.get("likely") is None else f", likely {likely}")


def signed(value: float | None, show: Callable[[float | None], str]) -> str:
    if value is None:
        return "-"
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return f"{sign}{show(abs(value))}"


@register.filter
def change(value: float | None, unit: str = "whole") -> str:
    """Show a difference with its sign. ``unit`` is ``whole`` or ``duration`` (milliseconds)."""
    return signed(value, duration if unit == "duration" else whole)


@register.filter
def as_json(value: Any) -> str:
    """Show a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


@register.simple_tag
def chart(name: str, data: Mapping[str, Any], label: str) -> SafeString:
    """Draw a chart. `chart_of` in `analytics.admin.tenants` makes ``data``; ``label`` describes the chart."""
    return format_html(
        '<div class="chart-box"><canvas id="{0}" data-chart="{0}-data" role="img" aria-label="{1}"></canvas>'
        "</div>{2}",
        name,
        label,
        json_script(data, f"{name}-data"),
    )


@register.filter
def at(values: Mapping[Any, Any], key: Any) -> Any:
    """Return ``values[key]``, or the key if it is missing, such as the id of a deleted tenant."""
    return values.get(key, key)


@register.filter
def named(names: Mapping[Any, tuple[str, str]], key: Any) -> tuple[str, str] | None:
    """Return address and name of a tenant or account, or None if it is deleted."""
    return names.get(key)


@register.filter
def less(value: float | None, other: float | None) -> float | None:
    """Return the difference of two numbers, or None if one is missing."""
    return None if value is None or other is None else value - other


@register.filter
def part_of(part: int, whole: int) -> float | None:
    """Return a share from counts, or None of nothing."""
    return part / whole if whole else None


@register.filter
def negated(value: float | None) -> float | None:
    return None if value is None else -value


@register.filter
def tombstone_end(released_at: dt.datetime) -> dt.datetime:
    """Return when other tenants may claim a released FQDN."""
    lifetime: dt.timedelta = settings.TOMBSTONE_LIFETIME
    return released_at + lifetime
