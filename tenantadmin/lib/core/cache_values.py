"""How the cache writes values into Redis: as MessagePack. Unlike pickle, it runs no code when it is read.

Values are None, texts, numbers, bytes, lists and dicts with text as keys. Tuples and sets are read as lists.
"""

from __future__ import annotations

from typing import Any

import msgspec


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
