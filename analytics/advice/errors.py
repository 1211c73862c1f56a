"""Errors of recommendations. Contract: Errors."""

from __future__ import annotations

from tenantadmin.lib.core.errors import Conflict, NotFound


class RecommendationNotFound(NotFound):
    message = "There is no such recommendation."


class WrongState(Conflict):
    """The recommendation was already decided."""

    code = "conflict"

    def __init__(self, *, state: str, allowed: str) -> None:
        super().__init__(f"The recommendation is {state}; this is possible while it is {allowed}.")


class RulesetMoved(Conflict):
    """The ruleset was written after the recommendation was made."""

    def __init__(self, *, base: int, current: int) -> None:
        super().__init__(
            f"The rules are at revision {current}, and the recommendation is based on revision {base}. "
            "Search for recommendations again."
        )


class NothingToWrite(Conflict):
    code = "conflict"
    message = "This changes no rule. Its reasons say what to change, and where."


class SameIsOpen(Conflict):
    code = "conflict"
    message = "The same recommendation is open again. Decide that one."
