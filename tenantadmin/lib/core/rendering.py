"""The JSON text and the entity tag of a document."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from tenantadmin.lib.core.errors import Conflict


def dump_json(data: Any) -> bytes:
    """Return ``data``, which may hold structs, as compact UTF-8 JSON. Integers may have any size.

    Raises:
        TypeError: ``data`` holds something that JSON has no type for.
    """
    return _encode(data)


def _as_text(value: object) -> str:
    """Return a subclass of str, such as Django's ``SafeString``, as the text that msgspec can write."""
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"JSON has no type for {type(value).__name__}")


_encode = msgspec.json.Encoder(enc_hook=_as_text).encode


def require_etag(etag: str, *, expected: str | None) -> None:
    """Refuse a write if ``expected`` does not name ``etag``, the entity tag of the stored document.

    ``expected`` is a value of ``If-Match``: entity tags, ``*``, or None if the caller expects nothing.

    Raises:
        Conflict: the caller's copy is stale.
    """
    if expected is None or expected.strip() == "*":
        return
    if etag not in {tag.strip() for tag in expected.split(",")}:
        raise Conflict


def strong_etag(*parts: object) -> str:
    """Return a strong ETag that changes whenever one of ``parts`` changes."""
    digest = hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).hexdigest()[:32]
    return f'"{digest}"'
