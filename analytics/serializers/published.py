"""Serializers of published queries and of verifications."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from analytics.published.verification import DOCUMENTS, InvalidKey, check_key
from tenantadmin.lib.http.serializers import (
    OneOfField,
    StrictCharField,
    StrictSerializer,
)


class VerificationBody(StrictSerializer):
    """Which document to verify."""

    document = OneOfField(choices=DOCUMENTS)
    period = StrictCharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=10,
        help_text="`2026-03-01`, `2026-03` or `2026`; for `users`, which covers the whole history, empty.",
    )
    userId = StrictCharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="`userName` of the log, for the day, month or year of one user.",
    )

    def validate(self, attrs: Any) -> Any:
        try:
            check_key(attrs["document"], attrs["period"], is_of_user="userId" in attrs)
        except InvalidKey as error:
            detail = serializers.ErrorDetail(str(error), "invalid")
            raise serializers.ValidationError({error.field: [detail]}) from error
        return attrs
