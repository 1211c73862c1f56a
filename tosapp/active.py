"""A cache of the active terms in each process, refreshed after `TOS_REFRESH_SECONDS`.

An announcement makes this process read terms at once that another process publishes. While the store fails,
the cached terms stay active.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from django.conf import settings

from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.objectstore import StoreError, default_store
from tosapp.announcement import announced_hash
from tosapp.store import read_current

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenantadmin.lib.objectstore import ObjectStore
    from tosapp.normal import Terms

logger = logging.getLogger(__name__)


class TosNotLoaded(ApiError):
    """There are no active terms, or they could not be read yet."""

    status: ClassVar[int] = 503
    code: ClassVar[str] = "tos_not_loaded"
    message: ClassVar[str] = "The terms of service are not loaded yet."


class ActiveTerms:
    """The cached active terms of one process. Thread-safe."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        refresh_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        announced: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._store = store
        self._refresh_seconds = refresh_seconds
        self._clock = clock
        self._announced = announced
        self._lock = threading.Lock()
        self._terms: Terms | None = None
        self._read_at: float | None = None

    def get(self, *, fresh: bool = False) -> Terms | None:
        """Return the active terms, or None before the first publication. ``fresh`` bypasses the cache.

        Raises:
            TosNotLoaded: the store fails and the terms were never read.
        """
        announced = self._announced()
        with self._lock:
            has_cached = self._read_at is not None
            is_superseded = announced is not None and (self._terms is None or self._terms.hash != announced)
            if fresh or is_superseded or self._is_stale():
                try:
                    self._adopt(read_current(self._store))
                except StoreError:
                    if not has_cached:
                        logger.exception("The terms of service cannot be read")
                        raise TosNotLoaded from None
                    logger.warning("The terms of service cannot be read; the cached ones stay active")
            return self._terms

    def adopt(self, terms: Terms) -> None:
        """Cache ``terms``, which this process has just published."""
        with self._lock:
            self._adopt(terms)

    def _is_stale(self) -> bool:
        return self._read_at is None or self._clock() - self._read_at >= self._refresh_seconds

    def _adopt(self, terms: Terms | None) -> None:
        self._terms, self._read_at = terms, self._clock()


def active_terms() -> ActiveTerms:
    """Return the cache of this process for ``storages["objects"]``."""
    return _of_store(default_store(), settings.TOS_REFRESH_SECONDS)


@lru_cache(maxsize=8)
def _of_store(store: ObjectStore, refresh_seconds: float) -> ActiveTerms:
    return ActiveTerms(store, refresh_seconds=refresh_seconds, announced=announced_hash)
