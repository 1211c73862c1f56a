"""Serializers of digests, of preferences and of exchanges with the language model."""

from __future__ import annotations

from typing import Any

from analytics.models import DigestFrequency
from tenantadmin.lib.http.serializers import (
    OneOfField,
    StrictCharField,
    StrictSerializer,
)


class DigestPreferenceBody(StrictSerializer):
    """Which digests to get."""

    frequency = OneOfField(choices=DigestFrequency.values)


class UnsubscribeBody(StrictSerializer):
    """What RFC 8058 has mail programs send, as a form."""

    may_be_absent = True

    def get_fields(self) -> dict[str, Any]:
        return {"List-Unsubscribe": StrictCharField(required=False, help_text="`One-Click`.")}


class UnsubscribeParameters(StrictSerializer):
    """The signed token of a mail."""

    t = StrictCharField(max_length=1000, required=False, allow_blank=True, help_text="The token of the link.")
