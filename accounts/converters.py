"""Path converters. Importing this module registers them."""

from __future__ import annotations

from django.urls import register_converter

from tenantadmin.lib.core.emails import normalize_email
from tenantadmin.lib.core.hosts import has_lookalike, normalize_fqdn


class EmailConverter:
    """An email address in a path, normalized. One with a look-alike letter is a 404."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        if "\0" in value or has_lookalike(value):
            raise ValueError
        return normalize_email(value)

    def to_url(self, value: str) -> str:
        return value


class SeqConverter:
    """A revision number: decimal, at least 0, without leading zeros."""

    regex = "0|[1-9][0-9]{0,8}"

    def to_python(self, value: str) -> int:
        return int(value)

    def to_url(self, value: int) -> str:
        return str(value)


class FqdnConverter:
    """A host name in a path, normalized. An invalid host name is a 404."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        return normalize_fqdn(value)

    def to_url(self, value: str) -> str:
        return value


register_converter(EmailConverter, "email")
register_converter(FqdnConverter, "fqdn")
register_converter(SeqConverter, "seq")
