"""The diff of two texts or documents, line by line."""

from __future__ import annotations

import difflib
from typing import Final

_CONTEXT: Final = 3
_KINDS: Final = {"+": "added", "-": "removed", "@": "skip"}


def diff_texts(before: str, after: str) -> list[tuple[str, str]]:
    """Return changed lines with some context: (``added``, ``removed``, ``skip`` or empty, text)."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=_CONTEXT)
    # The first two lines name files.
    return [(_KINDS.get(line[:1], ""), "…" if line[:1] == "@" else line[1:]) for line in list(lines)[2:]]
