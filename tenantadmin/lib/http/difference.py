"""The diff of two texts or documents, line by line."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONTEXT: Final = 3
_KINDS: Final = {"+": "added", "-": "removed", "@": "skip"}


def diff_texts(before: str, after: str) -> list[tuple[str, str]]:
    """Return changed lines with some context: (``added``, ``removed``, ``skip`` or empty, text)."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=_CONTEXT)
    # The first two lines name files.
    return [(_KINDS.get(line[:1], ""), "…" if line[:1] == "@" else line[1:]) for line in list(lines)[2:]]


def diff_documents(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the diff of two JSON documents, in the form of `diff_texts`."""
    return diff_texts(_indented(before), _indented(after))


def _indented(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True)
