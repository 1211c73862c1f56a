"""Pages of events. Contract: Events."""
# ruff: noqa: N815  (the members' names are those of the JSON)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.models.events import EventKind
from accounts.serializers.history import PageParameters
from tenantadmin.lib.http.serializers import (
    Link,
    OneOfField,
    StrictCharField,
    StrictUuidField,
    TimestampField,
)


class EventParameters(PageParameters):
    """`from` and `to` limit the period."""

    to = TimestampField(required=False, help_text="Inclusive.")
    actor = StrictCharField(
        required=False, max_length=320, help_text="Who did it: an email, or the name of a command."
    )
    subject = StrictCharField(
        required=False, max_length=320, help_text="What it was done to: an email, a domain, a hash of terms."
    )
    kind = OneOfField(choices=EventKind.values, required=False)
    tenant = StrictUuidField(required=False)

    def get_fields(self) -> dict[str, Any]:
        return {"from": TimestampField(required=False, help_text="Inclusive."), **super().get_fields()}


class EventDocument(serializers.Serializer[Any]):
    """Something that somebody did or tried. It never holds a secret."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    kind = OneOfField(choices=EventKind.values)
    actor = serializers.CharField(
        help_text="The email of who did it, or the name of a command or job. Empty for an unknown caller."
    )
    subject = serializers.CharField(
        help_text="The email, domain or hash of terms that it was done to. Empty if unknown."
    )
    tenantId = serializers.UUIDField(required=False)
    accountId = serializers.UUIDField(required=False)
    before = serializers.DictField(required=False)
    after = serializers.DictField(required=False)
    reason = serializers.CharField(
        required=False, help_text="Why something was refused, or why staff did it."
    )
    requestId = serializers.CharField(help_text="`-` for commands and jobs.")
    address = serializers.CharField(help_text="The client's address. Empty for commands and jobs.")


class EventPageLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()
    next = Link(required=False)


class EventPage(serializers.Serializer[Any]):
    """Events, newest first."""

    _links = EventPageLinks()
    events = EventDocument(many=True)
