"""What was published last, told to every process through the cache: none goes on with the text before.

Only that makes a publication visible at once; where Redis does not answer, the refresh interval does.
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
        logger.warning("Other processes adopt the new terms of service by and by: %s", error)


def announced_hash() -> str | None:
    """Return the hash that was announced lately; None where there is none, or Redis does not answer."""
    try:
        found: str | None = cache.get(_KEY)
    except RedisError:
        return None
    return found
