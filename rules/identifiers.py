"""Check cache keys in paths. Contract: Cache metadata."""

from __future__ import annotations

import re
from typing import Final

from tenantadmin.lib.core.errors import NotFound

_CACHE_KEY: Final = re.compile(r"[A-Za-z0-9._-]{1,256}")


def require_cache_key(text: str) -> str:
    """Return a cache key from a path.

    Raises:
        NotFound: it is not a valid cache key, so nothing is stored under it.
    """
    if not _CACHE_KEY.fullmatch(text):
        raise NotFound("A cache key is 1 to 256 letters, digits, '.', '_' and '-'.")
    return text
