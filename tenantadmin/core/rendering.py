"""What is sent of a document: its JSON text and its entity tag."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import orjson

_OPTIONS = orjson.OPT_NON_STR_KEYS


def dump_json(data: Any) -> bytes:
    """Return ``data`` as compact UTF-8 JSON, integers of any size in full."""
    try:
        return orjson.dumps(data, option=_OPTIONS)
    except orjson.JSONEncodeError:
        # An integer of more than 64 bits; PostgreSQL gives 1e300 back as one.
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def strong_etag(*parts: object) -> str:
    """Return a strong ETag that changes whenever one of ``parts`` does."""
    digest = hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).hexdigest()[:32]
    return f'"{digest}"'
