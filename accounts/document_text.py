"""Say in words what a change of a configuration or an account changed. No I/O.

Fields have the labels that they have on the dashboard's forms.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from accounts.diff import ChangeInWords, FieldChange
from tenantadmin.lib.core.formats import NONE, size, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

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


def say_fields(changes: Sequence[FieldChange]) -> tuple[ChangeInWords, ...]:
    """Say changes of fields in words."""
    return tuple(
        ChangeInWords(
            field=label_of(change.path),
            before=say_value(change.before, _SHOWN.get(change.path)),
            after=say_value(change.after, _SHOWN.get(change.path)),
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


def say_value(value: Any, show: Callable[[Any], str] | None = None) -> str:
    """Say a value. Null means that it is absent."""
    if value is None or (value == [] and show is None):
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if show is not None:
        return show(value)
    if isinstance(value, list) and all(isinstance(it, str) for it in value):
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
