"""Names of one line: they stand in mails, lists and logs."""

from __future__ import annotations

import unicodedata
from typing import Final

_CONTROLS: Final = frozenset({"Cc", "Cs", "Co", "Zl", "Zp"})


def is_line(text: str) -> bool:
    """Return True if the text has neither line breaks nor other control characters."""
    return not any(unicodedata.category(character) in _CONTROLS for character in text)
