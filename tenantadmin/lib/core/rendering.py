"""The JSON text and the entity tag of a document."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import orjson

_OPTIONS = orjson.OPT_NON_STR_KEYS


def dump_json(data: Any) -> bytes:
    """Return ``data`` as compact UTF-8 JSON. Integers may have any size."""
    try:
        return orjson.dumps(data, option=_OPTIONS)
    except orjson.JSONEncodeError:
        # orjson refuses integers of more than 64 bits. PostgreSQL returns 1e300 as such an integer.
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def strong_etag(*parts: object) -> str:
    """Return a strong ETag that changes whenever one of ``parts`` changes."""
    digest = hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).hexdigest()[:32]
    return f'"{digest}"'
