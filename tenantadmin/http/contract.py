"""The contract as it is published at ``GET /``: the committed file ``openapi.json``.

``make contract`` writes it from the code; a test holds the two equal. Contract: Versioning.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from tenantadmin.core.rendering import strong_etag

CONTRACT_FILE: Final = Path(__file__).with_name("openapi.json")


@cache
def published_contract() -> tuple[bytes, str]:
    """Return the committed contract and its ETag."""
    text = CONTRACT_FILE.read_bytes()
    return text, strong_etag(text)
