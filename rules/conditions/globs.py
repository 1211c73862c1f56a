"""Patterns of table names, in which ``*`` matches any characters."""

from __future__ import annotations

from typing import Final

#: Maximum length of a pattern in characters.
MAX_GLOB: Final = 2_000
#: The most patterns of one test, and the most names in ``tables`` of a request to explain. Each pattern is
#: compared with each name.
MAX_GLOBS: Final = 1_000
MAX_NAMES: Final = 1_000


def glob_matches(pattern: str, name: str) -> bool:
    """Return True if the pattern matches the whole name.

    The leftmost match of each piece between two ``*`` is enough, so no backtracking is needed.
    """
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
    """Return True if ``outer`` certainly matches every name that ``inner`` matches.

    The ``*`` of the inner pattern is treated as a character of a name. Only a ``*`` of the outer pattern can
    match it, so True is never wrong.
    """
    return glob_matches(outer, inner)
