"""Strong entity tags."""

from __future__ import annotations

import hashlib


def strong_etag(*parts: object) -> str:
    """Return a strong ETag that changes whenever one of ``parts`` does."""
    digest = hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).hexdigest()[:32]
    return f'"{digest}"'
