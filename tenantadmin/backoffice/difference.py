"""The difference of two texts, line by line."""

from __future__ import annotations

import difflib
from typing import Final

_CONTEXT: Final = 3
_KINDS: Final = {"+": "added", "-": "removed", "@": "skip"}


def diff_texts(before: str, after: str) -> list[tuple[str, str]]:
    """Return the lines that differ and some around: (``added``, ``removed``, ``skip`` or empty, text)."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=_CONTEXT)
    # The first two lines name files.
    return [(_KINDS.get(line[:1], ""), "…" if line[:1] == "@" else line[1:]) for line in list(lines)[2:]]
