"""The shape of sessions, for the contract. Contract: Authentication, 3."""
# ruff: noqa: N815  (the members' names are those of the JSON)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from tenantadmin.lib.http.serializers import HalLinks


class SessionDocument(serializers.Serializer[Any]):
    """A sign-in of a user that has not ended."""

    id = serializers.IntegerField()
    provider = serializers.CharField(allow_null=True, help_text="Null for a one-time link.")
    address = serializers.CharField(allow_blank=True, help_text="The network address that signed in.")
    userAgent = serializers.CharField(allow_blank=True, help_text="The browser that signed in.")
    createdAt = serializers.DateTimeField()
    lastUsedAt = serializers.DateTimeField(help_text="When it last got an access token, to the minute.")
    expiresAt = serializers.DateTimeField(allow_null=True)
    current = serializers.BooleanField(help_text="True for the session of the token that asks.")


class SessionList(serializers.Serializer[Any]):
    _links = HalLinks(label="")
    sessions = SessionDocument(many=True)
