"""Serializers of the terms of service, for bodies and for the contract.

Contract: Terms of service.
"""
# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from tenantadmin.lib.http.serializers import StrictCharField, StrictSerializer


class TosDocument(StrictSerializer):
    """The terms, whole."""

    markdown = StrictCharField(allow_blank=True, trim_whitespace=False)


class TosHashMismatch(serializers.Serializer[Any]):
    """The Error body with the hash of the active document."""

    error = serializers.ChoiceField(choices=["tos_hash_mismatch"])
    message = serializers.CharField()
    requestId = serializers.CharField()
    currentHash = serializers.CharField()
