"""Cache finished documents. Without the cache, each document is computed again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from django.core.cache import cache
from redis import RedisError

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

_SECONDS: Final = 3600


def get_cached(key: str) -> bytes | None:
    """Return the document under ``key``; None if there is none or the cache does not answer."""
    body: bytes | None = _cache.call(lambda: cache.get(key))
    return body


def cache_document(key: str, body: bytes) -> None:
    """Keep ``body`` for an hour. Do nothing if the cache does not answer."""
    _cache.call(lambda: cache.set(key, body, _SECONDS))


def forget_document(key: str) -> None:
    """Delete the document under ``key``. Do nothing if the cache does not answer."""
    _cache.call(lambda: cache.delete(key))


class _Cache:
    """Calls the cache. Logs an outage once, until the cache answers again."""

    def __init__(self) -> None:
        self._is_unavailable = False

    def call(self, operation: Callable[[], Any]) -> Any:
        try:
            result = operation()
        except RedisError as error:
            if not self._is_unavailable:
                _log.warning(
                    "The cache does not answer; users' documents are computed for each request: %s",
                    error,
                )
            self._is_unavailable = True
            return None
        self._is_unavailable = False
        return result


_cache: Final = _Cache()
