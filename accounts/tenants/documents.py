"""The documents of a tenant that other apps keep.

A tenant has two stored documents: its configuration, kept here, and its ruleset, kept by the rules app, which
this one must not import. Each app that keeps a document names its keeper in ``settings.TENANT_DOCUMENTS``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    import datetime as dt

    from accounts.models import Tenant


class DocumentKeeper(Protocol):
    """Creates and deletes one document of a tenant, inside the transaction of its creation or deletion."""

    def create(self, *, tenant: Tenant, actor: str, at: dt.datetime) -> None:
        """Store the first revision of the document with ``seq`` 0."""

    def delete(self, *, tenant: Tenant, actor: str, at: dt.datetime) -> int:
        """Remove the document, append its ``delete`` revision, return how many were removed (0 or 1)."""


@cache
def _keepers(names: tuple[str, ...]) -> tuple[DocumentKeeper, ...]:
    return tuple(import_string(name)() for name in names)


def document_keepers() -> tuple[DocumentKeeper, ...]:
    """Return the keepers that the settings name."""
    return _keepers(tuple(settings.TENANT_DOCUMENTS))
