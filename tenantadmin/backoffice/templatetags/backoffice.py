"""How the staff's pages show times, numbers and charts."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

from django import template
from django.conf import settings
from django.utils.html import format_html, json_script

from tenantadmin.core.timestamps import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def moment(value: dt.datetime | str | None) -> str:
    """Show a time in UTC. The page's script adds the reader's own time."""
    if not value:
        return "-"
    at = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    text = at.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return format_html('<time class="with-local" datetime="{}">{}</time>', format_timestamp(at), text)


@register.filter
def percent(value: float | None) -> str:
    """Show a share of 0 to 1, with one decimal place."""
    return "-" if value is None else f"{100 * value:.1f} %"


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
def as_json(value: Any) -> str:
    """Show a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


@register.simple_tag
def chart(name: str, data: Mapping[str, Any], label: str) -> SafeString:
    """Draw a chart. ``data`` is like that of `tenants.chart_of`; ``label`` says what one sees."""
    return format_html(
        '<div class="chart-box"><canvas id="{0}" data-chart="{0}-data" role="img" aria-label="{1}"></canvas>'
        "</div>{2}",
        name,
        label,
        json_script(data, f"{name}-data"),
    )


@register.filter
def at(values: Mapping[Any, Any], key: Any) -> Any:
    """Return ``values[key]``; the key itself if it is missing, such as the id of a tenant that is gone."""
    return values.get(key, key)


@register.filter
def negated(value: float | None) -> float | None:
    return None if value is None else -value


@register.filter
def tombstone_end(released_at: dt.datetime) -> dt.datetime:
    """Return when a released FQDN is free for other tenants."""
    lifetime: dt.timedelta = settings.TOMBSTONE_LIFETIME
    return released_at + lifetime
