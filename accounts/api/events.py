"""``GET /config/events``. Contract: Events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.urls import reverse
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.api.history import read_period
from accounts.event_pages import EventDocument, EventFilter, read_events
from accounts.routes import route
from accounts.serializers.events import EventParameters
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.emails import normalize_email
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.http.hal import Link, link, next_page
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rest_framework.request import Request


class EventPageLinks(JsonStruct):
    self_: Link
    parent: Link
    next: Link | None = None


class EventPage(JsonStruct):
    """Events, newest first."""

    links: EventPageLinks = msgspec.field(name="_links")
    events: list[EventDocument]


class EventViewSet(AppViewSet):
    """What happened to people, their rights and their credentials."""

    tag = "History"

    @route(
        "GET",
        "config/events",
        Level.SERVICE,
        Scope.USERS_READ,
        notes="platform admins: all; owners: their tenants and accounts; everyone: their own",
        name="events",
    )
    @operation(
        summary="List events, newest first",
        description="Sign-ins, tokens, roles, memberships, grants, domains, terms. Platform admins see all "
        "events, owners see events of their tenants and accounts, others see events by or about themselves.",
        query=EventParameters,
        responses={200: EventPage},
    )
    def list_events(self, request: Request) -> Response:
        page = read_events(
            self.principal,
            _read_filter(self.query),
            limit=self.query["limit"],
            cursor=self.query.get("cursor"),
        )
        links = EventPageLinks(
            self_=link(request.get_full_path()),
            parent=link(reverse("contract")),
            next=next_page(request, page.cursor),
        )
        events = [EventDocument.of(event, reason=event.reason or None) for event in page.events]
        return Response(EventPage(links=links, events=events))


def _read_filter(asked: Mapping[str, Any]) -> EventFilter:
    """Return the filter of validated parameters.

    Raises:
        BadRequest: the period ends before it begins.
    """
    since, until = read_period(asked)
    actor, subject = asked.get("actor"), asked.get("subject")
    return EventFilter(
        since=since,
        until=until,
        actor=None if actor is None else normalize_email(actor),
        subject=None if subject is None else normalize_email(subject),
        kind=asked.get("kind"),
        tenant=asked.get("tenant"),
    )
