"""Tells every process through the cache which terms were published last, so that none keeps the earlier ones.

Without Redis a process adopts new terms when its refresh interval has passed.
"""

from __future__ import annotations

import logging
from typing import Final

from django.conf import settings
from django.core.cache import cache
from redis import RedisError

logger = logging.getLogger(__name__)

_KEY: Final = "tos:published"


def announce(terms_hash: str) -> None:
    """Tell every process that the document with this hash is in the store, and active."""
    try:
        # By then every process has read the store by itself.
        cache.set(_KEY, terms_hash, timeout=2 * settings.TOS_REFRESH_SECONDS + 1)
    except RedisError as error:
        logger.warning("Other processes adopt the new terms of service later: %s", error)


def announced_hash() -> str | None:
    """Return the hash that was announced lately; None where there is none, or Redis does not answer."""
    try:
        found: str | None = cache.get(_KEY)
    except RedisError:
        return None
    return found
