"""The JSON text and the entity tag of a document, and values as PostgreSQL and Redis store them.

Values are None, texts, numbers, bytes, lists and dicts with text as keys. Tuples and sets are read as lists.
"""

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


_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")

_REPLACEMENT: Final = "\ufffd"


def is_storable(text: str) -> bool:
    """Return True if PostgreSQL can store the text."""
    return _UNSTORABLE.search(text) is None


def make_storable(value: Any) -> Any:
    """Return a struct or JSON value as JSON, with U+FFFD in place of characters that cannot be stored."""
    return _without_unstorable(msgspec.to_builtins(value))


def _without_unstorable(value: Any) -> Any:
    match value:
        case str():
            return _UNSTORABLE.sub(_REPLACEMENT, value)
        case dict():
            return {_without_unstorable(name): _without_unstorable(member) for name, member in value.items()}
        case list() | tuple():
            return [_without_unstorable(element) for element in value]
        case _:
            return value


class CacheSerializer:
    """The ``serializer`` of `django.core.cache.backends.redis.RedisCache`."""

    def dumps(self, value: Any) -> bytes | int:
        """Return what Redis stores. An integer stays one, so that Redis can count it up.

        Raises:
            TypeError: there is a value of another type.
        """
        if type(value) is int:
            return value
        return msgspec.msgpack.encode(value, enc_hook=_refuse)

    def loads(self, data: bytes) -> Any:
        """Return the value of `dumps`.

        Raises:
            msgspec.DecodeError: it was written by something else.
        """
        try:
            # No other value begins with a digit or a sign.
            return int(data)
        except ValueError:
            return msgspec.msgpack.decode(data)


def _refuse(value: Any) -> Any:
    raise TypeError(f"The cache does not take a {type(value).__name__}.")
