"""Pages of changes, revisions and differences. Contract: Change history."""
# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.models.history import RevisionAction, RevisionKind
from accounts.revisions import DEFAULT_LIMIT, MAX_LIMIT
from tenantadmin.lib.http.serializers import (
    Link,
    OneOfField,
    PageLinks,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    TimestampField,
)


class PageParameters(StrictSerializer):
    limit = StrictIntegerField(default=DEFAULT_LIMIT, min_value=1, max_value=MAX_LIMIT)
    cursor = StrictCharField(required=False, max_length=200, help_text="From the `next` link of a page.")


class ChangeParameters(PageParameters):
    """`from` and `to` limit the period."""

    to = TimestampField(required=False, help_text="Inclusive.")
    userId = StrictCharField(required=False, max_length=320, help_text="Who made the change.")
    kind = OneOfField(choices=RevisionKind.values, required=False)

    def get_fields(self) -> dict[str, Any]:
        return {"from": TimestampField(required=False, help_text="Inclusive."), **super().get_fields()}


class DiffParameters(StrictSerializer):
    """The two revisions to compare."""

    to = StrictIntegerField(min_value=0)

    def get_fields(self) -> dict[str, Any]:
        return {"from": StrictIntegerField(min_value=0), **super().get_fields()}


class Change(serializers.Serializer[Any]):
    """One recorded change."""

    seq = serializers.IntegerField(min_value=0)
    kind = OneOfField(choices=RevisionKind.values)
    tenantId = serializers.UUIDField(required=False)
    accountId = serializers.UUIDField()
    userId = serializers.CharField()
    changedAt = serializers.DateTimeField()
    action = OneOfField(choices=RevisionAction.values)
    restoredFrom = serializers.IntegerField(min_value=0, required=False)
    summary = serializers.DictField(help_text="Counts and names of what changed.")


class ChangeHistoryPage(serializers.Serializer[Any]):
    """Changes, newest first."""

    _links = PageLinks(label="")
    changes = Change(many=True)


class ChangeRevision(Change):
    """A change and the whole document after it; null after a deletion."""

    document = serializers.DictField(allow_null=True)


class FieldDifference(serializers.Serializer[Any]):
    """``from`` and ``to`` are any JSON value. Null can also mean that the value is absent."""

    path = serializers.CharField(help_text="JSON Pointer.")
    to = serializers.JSONField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "from": serializers.JSONField(allow_null=True)}


class DiffLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()
    to = Link()

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "from": Link()}


class DiffHead(serializers.Serializer[Any]):
    to = serializers.IntegerField(min_value=0)
    kind = OneOfField(choices=RevisionKind.values)
    _links = DiffLinks(label="")

    def get_fields(self) -> dict[str, Any]:
        return {"from": serializers.IntegerField(min_value=0), **super().get_fields()}


class DocumentDiff(DiffHead):
    """The fields that differ between two revisions."""

    fields = FieldDifference(many=True)  # type: ignore[assignment]  # a member, not the property
