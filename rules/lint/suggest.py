"""The nearest known name to a misspelled one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

#: A longer name is no misspelling.
_MAX_LENGTH: Final = 128
_SIMILARITY: Final = 0.6

#: Names compared in one lint, so that a body full of wrong names costs no more than its parsing allows.
_MAX_COMPARISONS: Final = 20_000


class Suggester:
    """Finds nearest names until its comparisons are used up; from then on it suggests nothing."""

    def __init__(self) -> None:
        self._comparisons_left = _MAX_COMPARISONS
        self._known: dict[tuple[str, int], str | None] = {}

    def find_nearest(self, name: str, candidates: Collection[str]) -> str | None:
        """Find the candidate most like the name, case aside; None where none is near.

        ``candidates`` must be the same object whenever it is meant to be the same collection.
        """
        cached = (name, id(candidates))
        if cached not in self._known:
            self._known[cached] = self._compare(name, candidates)
        return self._known[cached]

    def _compare(self, name: str, candidates: Collection[str]) -> str | None:
        if len(name) > _MAX_LENGTH or len(candidates) > self._comparisons_left:
            return None
        self._comparisons_left -= len(candidates)
        lowered = {candidate.lower(): candidate for candidate in candidates}
        nearest = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=_SIMILARITY)
        return lowered[nearest[0]] if nearest else None
