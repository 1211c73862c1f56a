"""Documents to the bytes that go out."""

from __future__ import annotations

import json
from typing import Any


def encode_document(document: dict[str, Any]) -> bytes:
    """Compact UTF-8 JSON. The standard library's encoder: sums may lie beyond 64 bits."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
