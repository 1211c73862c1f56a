"""Serializers of drafts."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tenantadmin.lib.http.serializers import (
    IgnoredField,
    JsonIntegerField,
    LineField,
    StrictSerializer,
)


@extend_schema_field(OpenApiTypes.OBJECT)
class DraftRuleField(serializers.JSONField):
    """A rule, which may have lint errors."""


class DraftStart(StrictSerializer):
    """A draft to make, or to replace another."""

    may_be_absent = True

    name = LineField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="Default: what the draft changes; empty if it changes nothing.",
    )
    rules = serializers.ListField(
        child=DraftRuleField(allow_null=True), required=False, help_text="Default: the current rules."
    )
    baseSeq = JsonIntegerField(
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        help_text="The revision that the draft changes. Default: the current one.",
    )


class DraftBody(DraftStart):
    """What replaces a draft. What is read-only may be sent back as read."""

    may_be_absent = False

    rules = serializers.ListField(child=DraftRuleField(allow_null=True))
    draftId = IgnoredField(required=False)
    tenantId = IgnoredField(required=False)
    lint = IgnoredField(required=False)
    createdAt = IgnoredField(required=False)
    createdBy = IgnoredField(required=False)
    modifiedAt = IgnoredField(required=False)
    modifiedBy = IgnoredField(required=False)
