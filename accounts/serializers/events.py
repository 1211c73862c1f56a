"""Pages of events. Contract: Events."""

from __future__ import annotations

from typing import Any

from accounts.models.events import EventKind
from accounts.serializers.history import PageParameters
from tenantadmin.lib.http.serializers import (
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
