"""Show times on pages. The page's script replaces them by the reader's own time."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from django.utils.html import format_html

from tenantadmin.lib.core import formats
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    from collections.abc import Callable


def moment(value: dt.datetime | str | None) -> str:
    """Show a time (aware, or ISO 8601) as in "2026-11-24 23:34:10 UTC"."""
    return _time(value, "", formats.exact_time)


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
