"""The token that tells a Gateway to leave its warm cache behind. Contract: Cache rules, Restore rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime as dt


def cache_bust(*, seq: int, modified_at: dt.datetime) -> str:
    """Return the token of a ruleset's revision.

    Fixed-width hex of the write's moment, which strictly grows per tenant, and of ``seq``: it sorts as text,
    and no value returns, not even where a database was set back to a backup and counts ``seq`` again.
    """
    milliseconds = round(modified_at.timestamp() * 1000)
    return f"{milliseconds:012x}{seq:08x}"
