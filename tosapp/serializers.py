"""Serializers of requests on the terms of service. Contract: Terms of service."""

from __future__ import annotations

from tenantadmin.lib.http.serializers import StrictCharField, StrictSerializer


class TosDocument(StrictSerializer):
    """The terms, whole."""

    markdown = StrictCharField(allow_blank=True, trim_whitespace=False)
