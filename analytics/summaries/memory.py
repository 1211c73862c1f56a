"""Finished documents in the cache, which only saves making them again: without it every one is made."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from django.core.cache import cache
from redis import RedisError

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

_SECONDS: Final = 3600


def recall(key: str) -> bytes | None:
    """What was remembered under ``key``; None where that is nothing, or the cache does not answer."""
    return _asked.ask(lambda: cache.get(key))


def remember(key: str, body: bytes) -> None:
    """Keep ``body`` for an hour, where the cache takes it."""
    _asked.ask(lambda: cache.set(key, body, _SECONDS))


class _Asked:
    """Asks the cache, and says once that it does not answer, until it does again."""

    def __init__(self) -> None:
        self._is_away = False

    def ask(self, question: Callable[[], bytes | None]) -> bytes | None:
        try:
            answer = question()
        except RedisError as error:
            if not self._is_away:
                _log.warning("The cache does not answer; users' documents are made anew each time: %s", error)
            self._is_away = True
            return None
        self._is_away = False
        return answer


_asked: Final = _Asked()
