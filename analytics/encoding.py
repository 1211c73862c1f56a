"""Encode documents as JSON."""

from __future__ import annotations

import json
from typing import Any


def encode_document(document: dict[str, Any]) -> bytes:
    """Return compact UTF-8 JSON. orjson cannot encode integers beyond 64 bits, which sums may be."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
