"""The latest acts about a person or a tenant, in words."""

from __future__ import annotations

from typing import Any, Final

from accounts.admin.names import names_of
from accounts.admin.telling import group_requests, rank_event, tell_event
from accounts.models import Event

_EVENTS: Final = 20


def latest_acts(**fields: Any) -> list[tuple[Event, str]]:
    """Return the newest acts: the event that tells it, what was done, and to which tenant or account."""
    found = Event.objects.filter(**fields).order_by("-at", "-id")[:_EVENTS]
    requests = group_requests(found, lambda event: (event.request_id, event.actor))
    events = [min(request, key=rank_event) for request in requests]
    names = names_of(key for it in events for key in (it.tenant_id, it.account_id) if key)
    told = []
    for event in events:
        what, joint = tell_event(event)
        place = event.tenant_id or event.account_id
        name = names[place][1] if place is not None and place in names else ""
        told.append((event, " ".join(filter(None, (what, joint, name))) if name else what))
    return told
