"""Helpers to read and write objects, and to choose the object store of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.files.base import ContentFile

from tenantadmin.lib.objectstore import storage_settings

if TYPE_CHECKING:
    from django.core.files.storage import Storage


def save_object(store: Storage, key: str, body: bytes) -> None:
    """Store an object."""
    store.save(key, ContentFile(body))


def read_object(store: Storage, key: str) -> bytes:
    """Return an object's bytes."""
    with store.open(key) as file:
        body: bytes = file.read()
        return body


def use_store(settings: Any, url: str) -> None:
    """Make ``storages["objects"]`` the store at ``url`` until the test ends."""
    settings.STORAGES = {**settings.STORAGES, "objects": storage_settings(url)}
