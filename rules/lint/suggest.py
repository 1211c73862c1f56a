"""Find the known name that is most similar to a misspelled one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

#: There are no suggestions for longer names.
_MAX_LENGTH: Final = 128
_SIMILARITY: Final = 0.6

#: Maximum number of names that one lint compares, to limit the time for a document of wrong names.
_MAX_COMPARISONS: Final = 20_000


def ask_nearest(nearest: str | None, *, otherwise: str = ".") -> str:
    """Return the end of a message: the question for the nearest name, or what it says without one."""
    return otherwise if nearest is None else f"; did you mean {nearest}?"


class Suggester:
    """Suggests names until the maximum number of comparisons is used up."""

    def __init__(self) -> None:
        self._comparisons_left = _MAX_COMPARISONS
        self._cache: dict[tuple[str, int, float], str | None] = {}

    def find_nearest(
        self, name: str, candidates: Collection[str], *, similarity: float | None = None
    ) -> str | None:
        """Return the candidate that is most similar to the name, without case; None if none is similar.

        ``similarity`` is from 0 to 1. Results are cached by the identity of ``candidates``: pass the same
        object for the same names.
        """
        cutoff = _SIMILARITY if similarity is None else similarity
        key = (name, id(candidates), cutoff)
        if key not in self._cache:
            self._cache[key] = self._compare(name, candidates, cutoff)
        return self._cache[key]

    def _compare(self, name: str, candidates: Collection[str], cutoff: float) -> str | None:
        if len(name) > _MAX_LENGTH or len(candidates) > self._comparisons_left:
            return None
        self._comparisons_left -= len(candidates)
        lowered = {candidate.lower(): candidate for candidate in candidates}
        nearest = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=cutoff)
        return lowered[nearest[0]] if nearest else None
