"""The JSON text and the entity tag of a document."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

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


#: The end of an entity tag that a proxy has changed.
_COMPRESSED: Final = re.compile(r'(?:--?|;)(?:gzip|br|zstd|deflate)"$')

_encode = msgspec.json.Encoder(enc_hook=_as_text).encode


def require_etag(etag: str, *, expected: str | None) -> None:
    """Refuse a write if ``expected`` does not name ``etag``, the entity tag of the stored document.

    ``expected`` is a value of ``If-Match``: entity tags, ``*``, or None if the caller expects nothing.

    Raises:
        Conflict: the caller's copy is stale.
    """
    if expected is not None and not names_etag(expected, etag):
        raise Conflict


def names_etag(header: str, etag: str) -> bool:
    """Return True if a value of ``If-Match`` or ``If-None-Match`` names ``etag``, or is ``*``.

    Proxies that compress an answer change its tag: to ``W/"tag"`` (nginx), ``"tag-gzip"`` (Apache) or
    ``"tag;gzip"``. A client sends back what it got.
    """
    tags = {_COMPRESSED.sub('"', tag.strip().removeprefix("W/")) for tag in header.split(",")}
    return "*" in tags or etag in tags


def strong_etag(*parts: object) -> str:
    """Return a strong ETag that changes whenever one of ``parts`` changes."""
    digest = hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).hexdigest()[:32]
    return f'"{digest}"'
