"""The terms of service and their acknowledgements, for bodies, answers and the contract.

Contract: Terms of service.
"""
# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from tenantadmin.lib.http.serializers import StrictCharField, StrictSerializer, TimestampField


class TosDocument(StrictSerializer):
    """The terms, whole."""

    markdown = StrictCharField(allow_blank=True, trim_whitespace=False)


class TosPublishResult(serializers.Serializer[Any]):
    """``published`` is false where the document was active already."""

    hash = serializers.CharField(source="publication.hash")
    published = serializers.BooleanField()
    publishedAt = serializers.DateTimeField(source="publication.published_at")
    publishedBy = serializers.EmailField(source="publication.published_by")


class TosAcknowledgement(serializers.Serializer[Any]):
    hash = serializers.CharField()
    acknowledgedAt = TimestampField(source="acknowledged_at")


class TosAckList(serializers.Serializer[Any]):
    """A user's acknowledgements, newest first."""

    email = serializers.EmailField()
    activeHash = serializers.CharField(source="active_hash", allow_null=True)
    upToDate = serializers.BooleanField(source="is_up_to_date")
    acknowledgements = TosAcknowledgement(many=True)


class TosHashMismatch(serializers.Serializer[Any]):
    """The Error body with the hash of the active document."""

    error = serializers.ChoiceField(choices=["tos_hash_mismatch"])
    message = serializers.CharField()
    requestId = serializers.CharField()
    currentHash = serializers.CharField()
