"""The contract that ``GET /`` publishes, as drf-spectacular makes it from the code. Contract: Versioning.

``make run``, ``make test`` and the image write it to a file when the service is installed. Where there is no
file, a process makes it at the first request. A review reads it in tests/contract/contract.txt.
"""

from __future__ import annotations

import gzip
import io
from functools import cache
from pathlib import Path
from typing import Final

from django.core.management import call_command

from tenantadmin.lib.core.rendering import strong_etag

CONTRACT_FILE: Final = Path(__file__).with_name("openapi.json")


@cache
def published_contract() -> tuple[bytes, str]:
    """Return the contract and its ETag."""
    try:
        content = CONTRACT_FILE.read_bytes()
    except FileNotFoundError:
        content = make_contract()
    return content, strong_etag(content)


@cache
def compressed_contract() -> bytes:
    """Return the contract, compressed by gzip."""
    return gzip.compress(published_contract()[0], mtime=0)


def make_contract() -> bytes:
    """Return the contract of the code as it is. Takes seconds.

    Raises:
        SchemaGenerationError: the contract has warnings.
    """
    text = io.StringIO()
    call_command("spectacular", "--format", "openapi-json", "--fail-on-warn", stdout=text)
    return text.getvalue().encode()
