"""One small interface over local files and S3. Imports no app."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tenantadmin.objectstore.batch import Batch
from tenantadmin.objectstore.interface import (
    Child,
    Entry,
    InvalidKey,
    ObjectNotFound,
    ObjectStore,
    StoreError,
)
from tenantadmin.objectstore.local import LocalStore

__all__ = [
    "Batch",
    "Child",
    "Entry",
    "InvalidKey",
    "LocalStore",
    "ObjectNotFound",
    "ObjectStore",
    "StoreError",
    "check_store_url",
    "default_store",
    "open_store",
]


def check_store_url(url: str) -> None:
    """Raise ValueError unless ``url`` is ``file:///directory`` or ``s3://bucket/prefix``."""
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise ValueError(f"OBJECT_STORE_URL {url!r} has a query or fragment; remove it")
    is_file = parts.scheme == "file" and parts.netloc in {"", "localhost"} and parts.path.startswith("/")
    if not is_file and not (parts.scheme == "s3" and parts.netloc):
        raise ValueError(f"OBJECT_STORE_URL {url!r} is neither file:///directory nor s3://bucket/prefix")


def open_store(url: str) -> ObjectStore:
    """The store at ``file:///directory`` or ``s3://bucket/prefix``.

    Raises:
        ValueError: the address is of neither form.
    """
    check_store_url(url)
    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalStore(Path(unquote(parts.path)))
    # Half a second that reading processes over local files do without.
    from tenantadmin.objectstore.s3 import S3Store  # noqa: PLC0415

    base = unquote(parts.path).strip("/")
    return S3Store(bucket=parts.netloc, base=f"{base}/" if base else "")


def default_store() -> ObjectStore:
    """The store that the setting ``OBJECT_STORE_URL`` names, made once per address."""
    from django.conf import settings  # noqa: PLC0415  # the rest of this package works without Django

    return _shared_store(str(settings.OBJECT_STORE_URL))


@lru_cache(maxsize=8)
def _shared_store(url: str) -> ObjectStore:
    return open_store(url)
