"""Patterns of table names: ``*`` stands for any run of characters, everything else for itself."""

from __future__ import annotations

from typing import Final

#: Longest pattern of a table name, in characters.
MAX_GLOB: Final = 2_000


def glob_matches(pattern: str, name: str) -> bool:
    """Match a whole name. Linear in the name for each ``*``: the leftmost place is always good enough."""
    head, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    tail = rest.pop()
    if len(name) < len(head) + len(tail) or not (name.startswith(head) and name.endswith(tail)):
        return False
    position, end = len(head), len(name) - len(tail)
    for piece in rest:
        position = name.find(piece, position, end)
        if position < 0:
            return False
        position += len(piece)
    return True


def glob_covers(outer: str, inner: str) -> bool:
    """Tell whether every name that one pattern matches is matched by the other too.

    Sound: the inner pattern's ``*`` is read as a character, which only an outer ``*`` can match, so a
    True is never wrong.
    """
    return glob_matches(outer, inner)
