"""Announce newly published terms to every process through the Django cache.

Without Redis a process reads new terms after its refresh interval.
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
    """Tell every process that the document with this hash is active and in the store."""
    try:
        # After this time every process has refreshed its cache anyway.
        cache.set(_KEY, terms_hash, timeout=2 * settings.TOS_REFRESH_SECONDS + 1)
    except RedisError as error:
        logger.warning("Other processes adopt the new terms of service later: %s", error)


def announced_hash() -> str | None:
    """Return the hash of the last announcement; None if there is none or Redis does not answer."""
    try:
        found: str | None = cache.get(_KEY)
    except RedisError:
        return None
    return found
