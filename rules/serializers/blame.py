"""Serializers of blame."""

from __future__ import annotations

from tenantadmin.lib.http.serializers import (
    StrictIntegerField,
    StrictSerializer,
)


class BlameParameters(StrictSerializer):
    seq = StrictIntegerField(required=False, min_value=0, help_text="Default: the current revision.")
