"""The contract that ``GET /`` publishes: the committed file ``openapi.json``. Contract: Versioning.

``make contract`` generates the file from the code. A test fails if the file is not up to date.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from typing import Final

from tenantadmin.lib.core.rendering import strong_etag

CONTRACT_FILE: Final = Path(__file__).with_name("openapi.json")


@cache
def published_contract() -> tuple[bytes, str]:
    """Return the committed contract and its ETag."""
    content = CONTRACT_FILE.read_bytes()
    return content, strong_etag(content)


@cache
def compressed_contract() -> bytes:
    """Return the committed contract, compressed by gzip."""
    return gzip.compress(published_contract()[0], mtime=0)
