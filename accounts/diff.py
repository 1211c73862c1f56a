"""Compare two revisions of a document. Contract: Change history.

Objects are compared member by member. An array is one value, because an index in a path does not identify an
element. No library gives exactly this: RFC 6902 patches lack the old value, and general diff libraries report
moves and their own types. No I/O.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from tenantadmin.lib.core.formats import NONE, size, span
from tenantadmin.lib.core.serving import check_work
from tenantadmin.lib.core.structs import JsonStruct


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


_APPROVALS: Final = {"notify": "owners get a mail", "required": "an owner approves it first"}

#: The label of a field by its JSON Pointer.
LABELS: Final = {
    "/tenantName": "Name",
    "/fqdns": "Addresses that programs connect to",
    "/labels": "Labels",
    "/defaults/cacheEnabled": "The cache is on",
    "/defaults/ttlSeconds": "Results live for",
    "/defaults/maxEntryBytes": "Largest result",
    "/logging/retentionDays": "Days to keep",
    "/logging/storeParameterValues": "Store the values of parameters",
    "/access/staffApproval": "When staff of the service want to read it",
    "/warehouse/adapterType": "Kind",
    "/warehouse/serverHostname": "Host",
    "/warehouse/port": "Port",
    "/warehouse/httpPath": "HTTP path",
    "/warehouse/database": "Database",
    "/warehouse/schema": "Schema",
    "/warehouse/warehouseName": "Warehouse",
    "/warehouse/credentialRef": "Credential",
    "/warehouse/perUserTables": "Tables that differ per user",
    "/warehouse/views": "Views",
    "/warehouse/pricing": "Prices",
}

_SHOWN: Final[Mapping[str, Callable[[Any], str]]] = {
    "/defaults/ttlSeconds": span,
    "/defaults/maxEntryBytes": size,
    "/access/staffApproval": lambda value: _APPROVALS.get(value, str(value)),
}


def describe_fields(changes: Sequence[FieldChange]) -> tuple[ChangeInWords, ...]:
    """Say changes of fields in words."""
    return tuple(
        ChangeInWords(
            field=label_of(change.path),
            before=describe_value(change.before, _SHOWN.get(change.path)),
            after=describe_value(change.after, _SHOWN.get(change.path)),
        )
        for whole in changes
        for change in _leaves(whole)
    )


def label_of(pointer: str) -> str:
    """Return the label of a field: "Days to keep". Without one, its name in words: "Billing email"."""
    if pointer in LABELS:
        return LABELS[pointer]
    if pointer.startswith("/labels/"):
        return f"Label {pointer.removeprefix('/labels/').replace('~1', '/').replace('~0', '~')}"
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", pointer.strip("/").replace("/", " ")).lower()
    return words[:1].upper() + words[1:]


def describe_value(value: Any, show: Callable[[Any], str] | None = None) -> str:
    """Describe a value. Null means that it is absent."""
    if value is None or (value == [] and show is None):
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if show is not None:
        return show(value)
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _leaves(change: FieldChange) -> Iterator[FieldChange]:
    """Yield the members of an object that came or went."""
    before, after = change.before, change.after
    if not (isinstance(before, dict) or isinstance(after, dict)) or change.path in LABELS:
        yield change
        return
    old, new = before or {}, after or {}
    for name in dict.fromkeys([*old, *new]):
        yield from _leaves(
            FieldChange(path=f"{change.path}/{name}", before=old.get(name), after=new.get(name))
        )
