"""The documents of a tenant that other apps store.

A tenant has two stored documents: its configuration in this app, and its ruleset in the rules app. This app
must not import the rules app, so ``settings.TENANT_DOCUMENTS`` names the classes that create, delete and
restore such documents.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from accounts.models import Tenant


class TenantDocument(Protocol):
    """One document of a tenant. Each method is called in the transaction that does the same to the tenant."""

    def create(self, *, tenant: Tenant, actor: str, at: dt.datetime) -> None:
        """Store the first revision of the document with ``seq`` 0."""

    def delete(self, *, tenant: Tenant, actor: str, at: dt.datetime) -> None:
        """Remove the document and append its ``delete`` revision."""

    def check_config(self, *, tenant: UUID, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Refuse a configuration with which the document is not safe.

        The caller holds the lock that writers of the document need.

        Raises:
            ValidationFailed: the error names the place in the configuration and how to correct it.
        """

    def restore(self, *, tenant: Tenant, actor: str, at: dt.datetime) -> None:
        """Store the document that the deletion removed, and append a ``restore`` revision."""


@cache
def _documents(names: tuple[str, ...]) -> tuple[TenantDocument, ...]:
    return tuple(import_string(name)() for name in names)


def tenant_documents() -> tuple[TenantDocument, ...]:
    """Return the documents that the settings name, besides the configuration."""
    return _documents(tuple(settings.TENANT_DOCUMENTS))
