"""What differs between two revisions of a document. Contract: Change history.

Objects are compared member by member; an array is one value, because a path into it would name a position
and not a thing. No library gives exactly this: RFC 6902 patches lack the old value, and the general differs
report moves and types of their own. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One differing value. ``path`` is a JSON Pointer; an absent value is None, as a null is."""

    path: str
    before: object
    after: object

    def as_json(self) -> dict[str, object]:
        """``{path, from, to}``."""
        return {"path": self.path, "from": self.before, "to": self.after}


def diff_documents(*, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[FieldChange, ...]:
    """Compare two documents.

    Changes come in the order of the earlier document, then what was added in the order of the later one.
    """
    return tuple(_diff_objects(before, after, ""))


def summarize_fields(changes: Sequence[FieldChange]) -> dict[str, Any]:
    """Return the ``summary`` of a change row: how many fields changed, and which."""
    return {"changedFields": len(changes), "fields": sorted(change.path for change in changes)[:50]}


def _diff_objects(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[FieldChange]:
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name), after.get(name)
        here = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _diff_objects(old, new, here)
        elif (name in before) != (name in after) or not _equal(old, new):
            yield FieldChange(here, old, new)


def _equal(old: object, new: object) -> bool:
    """JSON equality: unlike Python's, ``true`` is not 1."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_equal(value, new[name]) for name, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_equal, old, new))
    return old == new
