"""The normal form of the terms and their hash. Pure. Contract: Terms of service."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

HASH: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Terms:
    """A document in its normal form and the lowercase hex MD5 of its UTF-8."""

    hash: str
    markdown: str


def normalize(markdown: str) -> str:
    """Return ``markdown`` with LF line ends, no trailing whitespace, no blank lines at start and end."""
    lines = [line.rstrip() for line in markdown.replace("\r\n", "\n").split("\n")]
    first = next((index for index, line in enumerate(lines) if line), len(lines))
    last = next((index for index in range(len(lines), first, -1) if lines[index - 1]), first)
    return "\n".join(lines[first:last])


def terms_of(markdown: str) -> Terms | None:
    """Return the terms that ``markdown`` is, or None where nothing remains of it."""
    text = normalize(markdown)
    if not text:
        return None
    return Terms(hash=hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), markdown=text)
