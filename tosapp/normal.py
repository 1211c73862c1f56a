"""The normal form of the terms, and their hash. Contract: Terms of service."""

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
    return "\n".join(line.rstrip() for line in markdown.split("\n")).strip("\n")


def terms_of(markdown: str) -> Terms | None:
    """Return ``markdown`` as terms in normal form, or None if it is empty after normalization."""
    text = normalize(markdown)
    if not text:
        return None
    return Terms(hash=hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), markdown=text)
