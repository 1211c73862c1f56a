"""Keep results of queries for some minutes, so that a query that is sent again needs no engine.

Redis keeps them, for all processes. A result is kept if the statement depends neither on the time nor on
chance. It is found while the days that it read have the same files; a build gives its file a new name.
Without Redis, each query runs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from dataclasses import dataclass, field, replace
from functools import cache as call_once
from pathlib import Path
from typing import TYPE_CHECKING, Final

import limits as rates
from django.conf import settings
from django.core.cache import cache
from limits.errors import StorageError
from limits.strategies import FixedWindowRateLimiter
from redis import RedisError

from accounts.limits import storage
from logs.sql import transfer

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from logs.sql.protocol import Limits, LogSource, QueryResult

logger = logging.getLogger(__name__)

#: The largest result that is kept, as an Arrow stream.
MAX_BYTES: Final = 256 << 10


@dataclass(slots=True)
class KeptResult:
    """The place of one statement's result, under the limits in force, for one tenant."""

    tenant: UUID
    statement: str
    limits: Limits
    #: Redis did not answer, so that it is not asked twice.
    _is_away: bool = field(default=False, init=False)

    def find(self, source: LogSource) -> QueryResult | None:
        """Return the kept result over ``source``, or None."""
        if not settings.SQL_OPTIONS.kept_seconds:
            return None
        started = time.monotonic()
        try:
            found = cache.get(self._key)
        except RedisError as error:
            logger.warning("Kept results of queries cannot be read: %s", error)
            self._is_away = True
            return None
        if found is None:
            return None
        builds, other_days, body = found
        if builds != _builds(source, without=other_days):
            return None
        elapsed_ms = round((time.monotonic() - started) * 1000)
        return replace(transfer.decode_result(body), elapsed_ms=elapsed_ms, is_kept=True)

    def keep(self, source: LogSource, result: QueryResult) -> None:
        """Keep the result over ``source``, if it is small and right until one of its days is built again."""
        options = settings.SQL_OPTIONS
        if not options.kept_seconds or self._is_away or result.days is None or result.nbytes > MAX_BYTES:
            return
        body = transfer.encode_result(result)
        if len(body) > MAX_BYTES:
            return
        # A day that is in neither list came later, and the statement may read it.
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
    """Return a digest of the files of all days but some."""
    days = (day.day for day in source.days for _ in day.files)
    files = [key for day, key in zip(days, source.keys, strict=True) if day not in without]
    return hashlib.sha256("\n".join(files).encode()).hexdigest()


@call_once
def _version() -> str:
    """Return a digest of the code that makes results, which names the engine's version too."""
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted([Path(__file__), folder / "columns.py", *(folder / "sql").glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()
