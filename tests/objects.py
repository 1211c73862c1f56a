"""Helpers to read and write objects, and to choose the object store of a test."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.files.base import ContentFile

from logs.layout import day_prefix
from tenantadmin.lib.objectstore import default_store, storage_settings

if TYPE_CHECKING:
    from django.core.files.storage import Storage


def save_object(store: Storage, key: str, body: bytes) -> None:
    """Store an object."""
    store.save(key, ContentFile(body))


def save_entries(tenant: UUID, day: date, entries: Iterable[Any], *, name: str = "00/a.json") -> None:
    """Store raw log entries of a day as an object, a line each. ``name`` begins with the hour."""
    body = "\n".join(map(json.dumps, entries))
    save_object(default_store(), day_prefix(tenant, day) + name, body.encode())


def read_object(store: Storage, key: str) -> bytes:
    """Return an object's bytes."""
    with store.open(key) as file:
        body: bytes = file.read()
        return body


def use_store(settings: Any, url: str) -> None:
    """Make ``storages["objects"]`` the store at ``url`` until the test ends."""
    settings.STORAGES = {**settings.STORAGES, "objects": storage_settings(url)}
