"""Fields that the bodies of several resources share. Contract: Resources and their fields."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.tenants.names import MAX_NAME, normalize_name
from tenantadmin.lib.core.emails import check_email
from tenantadmin.lib.core.hosts import normalize_fqdn
from tenantadmin.lib.http.serializers import StrictCharField


class EmailField(StrictCharField):
    """An email address. The value is normalized."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        try:
            return check_email(super().to_internal_value(data))
        except ValueError as error:
            raise serializers.ValidationError(str(error), code="invalid-email") from error


class NameField(StrictCharField):
    """The name of a tenant or an account. The value is trimmed and NFC."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=4 * MAX_NAME, trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        try:
            return normalize_name(super().to_internal_value(data))
        except ValueError as error:
            raise serializers.ValidationError(str(error), code="invalid-name") from error


class FqdnField(StrictCharField):
    """A host name. The value is lower-case and in its ASCII form."""

    def to_internal_value(self, data: Any) -> str:
        try:
            return normalize_fqdn(super().to_internal_value(data))
        except ValueError as error:
            raise serializers.ValidationError(str(error), code="invalid-fqdn") from error
