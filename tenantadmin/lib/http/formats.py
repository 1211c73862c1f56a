"""Show times on pages. The page's script replaces them by the reader's own time."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import mark_safe

from tenantadmin.lib.core import formats
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

#: As `formats.exact_time` and `formats.exact_minute` write it.
_EXACT: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?) UTC")


def moment(value: dt.datetime | str | None) -> str:
    """Show a time (aware, or ISO 8601) as in "2026-11-24 23:34:10 UTC"."""
    return _time(value, "", formats.exact_time)


def with_moments(text: str) -> SafeString:
    """Show a text; the times in it are in the reader's zone, as those beside it."""
    shown = _EXACT.sub(_moment_found, str(conditional_escape(text)))
    return mark_safe(shown)  # noqa: S308  # escaped


def _moment_found(found: re.Match[str]) -> str:
    try:
        return moment(f"{found[1]}Z")
    except ValueError:  # a name that only looks like a time
        return found[0]


def ago(value: dt.datetime | str | None) -> str:
    """Show how long ago a time was, as in "8 days ago"; its tooltip is the time itself."""
    return _time(value, "ago", lambda at: formats.ago(at, now=now()))


def _time(value: dt.datetime | str | None, kind: str, show: Callable[[dt.datetime], str]) -> str:
    if not value:
        return formats.NONE
    at = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    return format_html(
        '<time class="moment {}" datetime="{}" title="{}">{}</time>',
        kind,
        format_timestamp(at),
        formats.exact_time(at),
        show(at),
    )
