"""Template filters and tags of staff pages: times, numbers and charts."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from django import template
from django.conf import settings

from accounts.dashboard import in_dashboard
from tenantadmin.lib.core import formats, queues
from tenantadmin.lib.http.formats import ago, moment, with_moments

if TYPE_CHECKING:
    from django.db.models import Model

    from tenantadmin.lib.core.errors import ApiError

register = template.Library()

register.filter(with_moments)


_QUEUES: Final = {
    queues.DEFAULT: "Everything else",
    queues.FINDING: "Finding changed logs",
    queues.BUILDING: "Building days",
    queues.CLEANING: "Deleting old files",
    queues.REPLAYS: "Replays and searches",
}


@register.filter
def queue(name: str) -> str:
    """Return what the tasks of a queue do."""
    return _QUEUES.get(name, name)


@register.filter
def meaning(model: type[Model]) -> str:
    """Return the first sentence about a model, for the list of all records."""
    said = " ".join((model.__doc__ or "").split()).replace("``", "")
    return said.partition(". ")[0].removesuffix(".") + "."


_PHRASES: Final = ((re.compile(r"'from' is later than 'to'\."), "The first day is later than the last."),)
#: Members of requests, as fields of pages.
_LABELS: Final = {
    "from": "First day",
    "to": "Last day",
    "until": "Until",
    "owners": "Owners",
    "email": "Email",
    "domain": "Domain",
}


@register.filter
def reword(text: str) -> str:
    """Return a message of the API in the words of a page."""
    for pattern, phrase in _PHRASES:
        text = pattern.sub(phrase, text)
    return text


@register.filter
def describe_details(error: ApiError) -> list[tuple[str | None, str, str]]:
    """Return label, place and message of each detail that says more than the error itself."""
    return [
        (
            _LABELS.get(detail.path.split("/")[1] if detail.path.startswith("/") else detail.path),
            detail.path,
            reword(detail.message),
        )
        for detail in error.details
        if detail.message != error.text
    ]


register.simple_tag(in_dashboard)
register.filter(moment)
register.filter(ago)


for _name, _show in {
    "percent": formats.percent,
    "points": formats.points,
    "whole": formats.number,
    "duration": formats.duration,
    "size": formats.size,
}.items():
    register.filter(_name, _show)
register.filter("saving", formats.saving)


@register.filter
def seconds(value: float | None) -> str:
    """Show seconds in the largest unit that fits."""
    return formats.duration(None if value is None else value * 1000)


@register.filter
def growth(value: float | None) -> str:
    """Show a change as a share, with its sign: "+12.3%"."""
    return f"{'+' if value and value > 0 else ''}{formats.percent(value)}"


@register.filter
def at(values: Mapping[Any, Any], key: Any) -> Any:
    """Return ``values[key]``, or the key if it is missing, such as the id of a deleted tenant."""
    return values.get(key, key)


@register.filter
def found(values: Mapping[Any, Any], key: Any) -> Any:
    """Return ``values[key]``, or None if it is missing."""
    return values.get(key)


@register.filter
def named(names: Mapping[Any, tuple[str, str]], key: Any) -> tuple[str, str] | None:
    """Return address and name of a tenant or account, or None if it is deleted."""
    return names.get(key)


@register.filter
def negated(value: float | None) -> float | None:
    return None if value is None else -value


@register.filter
def tombstone_end(released_at: dt.datetime) -> dt.datetime:
    """Return when other tenants may claim a released FQDN."""
    lifetime: dt.timedelta = settings.TOMBSTONE_LIFETIME
    return released_at + lifetime
