"""Keep the results of queries in Redis for some minutes, so that a repeated query needs no engine.

All processes share them. A result is kept if the statement depends neither on the time nor on random numbers,
and it is used while the days that it read have the same files: each build gives its file a new name. Without
Redis, every query runs.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cache as call_once
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

import limits as rates
from django.conf import settings
from django.core.cache import cache
from limits.errors import StorageError
from limits.strategies import FixedWindowRateLimiter
from redis import RedisError

from accounts.limits import storage
from logs.sql.engines import remote

if TYPE_CHECKING:
    from logs.sql.protocol import Limits, LogSource, QueryResult

logger = logging.getLogger(__name__)

#: The largest result that is kept, as an Arrow stream.
MAX_BYTES: Final = 256 << 10
#: A query that takes less is as cheap to run again: to keep a result takes 2 ms.
MIN_SECONDS: Final = 0.01


@dataclass(slots=True)
class KeptResult:
    """Finds and keeps the result of one tenant's statement under certain limits."""

    tenant: UUID
    statement: str
    limits: Limits
    #: Redis did not answer, so the result is not sent to it.
    _is_away: bool = field(default=False, init=False)

    def find(self, source: LogSource) -> QueryResult | None:
        """Return the kept result over ``source``, or None."""
        if not settings.SQL_OPTIONS.kept_seconds:
            return None
        try:
            entry = cache.get(self._key)
        except RedisError as error:
            logger.warning("Kept results of queries cannot be read: %s", error)
            self._is_away = True
            return None
        if entry is None:
            return None
        builds, other_days, body = entry
        if builds != _builds(source, without=set(other_days)):
            return None
        return replace(remote.decode_result(body), is_kept=True)

    def keep(self, source: LogSource, result: QueryResult, *, seconds: float) -> None:
        """Keep a result over ``source`` if it is small, took long, and only a new build can change it.

        Args:
            seconds: how long its query ran.
        """
        options = settings.SQL_OPTIONS
        if not options.kept_seconds or self._is_away or result.days is None:
            return
        if seconds < MIN_SECONDS or result.nbytes > MAX_BYTES:
            return
        body = remote.encode_result(result)
        if len(body) > MAX_BYTES:
            return
        # A later day is in neither list, and the statement may read it.
        other_days = {day.day for day in source.days}.difference(result.days)
        entry = _builds(source, without=other_days), other_days, body
        quota = rates.RateLimitItemPerSecond(options.kept_bytes, options.kept_seconds)
        try:
            if FixedWindowRateLimiter(storage()).hit(quota, "kept-results", str(self.tenant), cost=len(body)):
                cache.set(self._key, entry, timeout=options.kept_seconds)
        except (RedisError, StorageError) as error:
            logger.warning("The result of a query cannot be kept: %s", error)

    @property
    def _key(self) -> str:
        limits = [self.limits.max_rows, self.limits.max_bytes, self.limits.max_columns]
        place = json.dumps([_version(), limits, self.statement])
        return f"queries:kept:{self.tenant}:{hashlib.sha256(place.encode()).hexdigest()}"


def _builds(source: LogSource, *, without: Collection[str]) -> str:
    """Return a digest of the files of all days except ``without``."""
    days = (day.day for day in source.days for _ in day.files)
    files = [key for day, key in zip(days, source.keys, strict=True) if day not in without]
    return hashlib.sha256("\n".join(files).encode()).hexdigest()


@call_once
def _version() -> str:
    """Return a digest of the code that makes results. A file of it names the engine's version."""
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted([Path(__file__), folder / "columns.py", *(folder / "sql").rglob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()
