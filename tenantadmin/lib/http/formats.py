"""Show values on pages."""

from __future__ import annotations

import datetime as dt

from django.utils.html import format_html

from tenantadmin.lib.core.timestamps import format_timestamp


def moment(value: dt.datetime | str | None) -> str:
    """Show a time in UTC. The page's script adds the reader's own time."""
    if not value:
        return "-"
    at = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    text = at.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return format_html('<time class="with-local" datetime="{}">{}</time>', format_timestamp(at), text)
