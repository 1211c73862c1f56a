"""Compare two revisions of a document. Contract: Change history.

Objects are compared member by member. An array is one value, because an index in a path does not identify an
element. No library gives exactly this: RFC 6902 patches lack the old value, and general diff libraries report
moves and their own types. No I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.work import check_work

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class FieldChange(JsonStruct):
    """``from`` and ``to`` are any JSON value. Null can also mean that the value is absent."""

    component = "FieldDifference"

    path: Annotated[str, Meta(description="JSON Pointer.")]
    after: Any = msgspec.field(name="to")
    before: Any = msgspec.field(name="from")


class ChangeInWords(JsonStruct):
    """What changed in a field, for people to read. A dash means that there is no value."""

    field: Annotated[str, Meta(description="Its label on the dashboard.")]
    before: str = msgspec.field(name="from")
    after: str = msgspec.field(name="to")


def diff_documents(*, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[FieldChange, ...]:
    """Compare two documents.

    First come changed and removed members in ``before``'s order, then added members in ``after``'s order.
    """
    return tuple(_diff_objects(before, after, ""))


def summarize_fields(changes: Sequence[FieldChange]) -> dict[str, Any]:
    """Return the ``summary`` of a change: how many fields changed, and the paths of at most 50 of them."""
    return {"changedFields": len(changes), "fields": sorted(change.path for change in changes)[:50]}


def _diff_objects(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[FieldChange]:
    check_work()
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name), after.get(name)
        here = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _diff_objects(old, new, here)
        elif (name in before) != (name in after) or not equal_values(old, new):
            yield FieldChange(path=here, before=old, after=new)


def equal_values(old: object, new: object) -> bool:
    """Return True if two JSON values are equal. Unlike in Python, ``true`` does not equal 1."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(equal_values(value, new[name]) for name, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(equal_values, old, new))
    return old == new
