"""The object store: raw logs, compacted logs, rollups, terms of service. Imports no app.

`default_store` returns ``storages["objects"]``, a Django storage. `S3Store` extends the S3 storage of
django-storages, `LocalStore` extends Django's `FileSystemStorage`. Single objects have Django's interface:

    store.save(key, ContentFile(b"..."))        # replaces the object
    with store.open(key) as file:               # reads it
        file.read()
    store.delete(key), store.exists(key), store.size(key), store.listdir(prefix)

Both add methods for hundreds of thousands of objects, such as `list` and `read_many` (see `ObjectStore`).
Errors are `StoreError`s.
"""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import unquote, urlsplit

from django.core.files.storage import storages

from tenantadmin.lib.objectstore.local import LocalStore
from tenantadmin.lib.objectstore.storage import (
    Batch,
    Entry,
    InvalidKey,
    ObjectNotFound,
    ObjectStore,
    StoreError,
    check_prefix,
)

__all__ = [
    "Batch",
    "Entry",
    "InvalidKey",
    "LocalStore",
    "ObjectNotFound",
    "ObjectStore",
    "StoreError",
    "default_store",
    "open_store",
    "storage_settings",
]


def storage_settings(url: str) -> dict[str, Any]:
    """Return the entry of ``STORAGES`` for ``file:///directory`` or ``s3://bucket/prefix``.

    Raises:
        ValueError: the URL has neither form.
    """
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise ValueError(f"OBJECT_STORE_URL {url!r} has a query or a fragment; remove it")
    path = unquote(parts.path)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and path.startswith("/"):
        return {"BACKEND": "tenantadmin.lib.objectstore.local.LocalStore", "OPTIONS": {"location": path}}
    if parts.scheme == "s3" and parts.netloc:
        location = path.strip("/")
        check_prefix(f"{location}/" if location else "")
        return {
            "BACKEND": "tenantadmin.lib.objectstore.s3.S3Store",
            "OPTIONS": {"bucket_name": parts.netloc, "location": location},
        }
    raise ValueError(f"OBJECT_STORE_URL must be file:///directory or s3://bucket/prefix, not {url!r}")


def open_store(url: str) -> ObjectStore:
    """Return the store at ``file:///directory`` or ``s3://bucket/prefix``.

    Raises:
        ValueError: the URL has neither form.
    """
    return cast("ObjectStore", storages.create_storage(storage_settings(url)))


def default_store() -> ObjectStore:
    """Return ``storages["objects"]``, typed as `ObjectStore`."""
    return cast("ObjectStore", storages["objects"])
