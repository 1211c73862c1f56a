"""The raw log tree: years down to one object. Contract: "Raw logs".

A listing costs with the children of its level, not with the objects below. Every read is audited first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from logs.audit import Reader, record_read
from logs.layout import logs_prefix, parse_raw_key
from tenantadmin.http import hal
from tenantadmin.http.errors import NotFound
from tenantadmin.objectstore import InvalidKey, ObjectNotFound

if TYPE_CHECKING:
    from uuid import UUID

    from tenantadmin.objectstore import ObjectStore

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"

#: What may stand at each level below the year: month, day, hour.
_LEVELS: Final = (
    re.compile(r"0[1-9]|1[0-2]"),
    re.compile(r"0[1-9]|[12][0-9]|3[01]"),
    re.compile(r"[01][0-9]|2[0-3]"),
)


@dataclass(frozen=True, slots=True)
class RawLog:
    """One raw log object as stored, and its media type."""

    body: bytes
    media_type: str


def list_level(store: ObjectStore, *, tenant: UUID, path: tuple[str, ...], reader: Reader) -> dict[str, Any]:
    """The children of ``path`` (year, month, day, hour: as many as are given), by name.

    Raises:
        NotFound: the level has no data.
    """
    prefix = logs_prefix(tenant) + "".join(f"{segment}/" for segment in path)
    record_read(reader, tenant=tenant, key=prefix)
    names = sorted(
        child.name
        for child in store.children(prefix)
        if _belongs(child.name, prefix=prefix, depth=len(path), is_object=child.is_object)
    )
    if not names:
        raise NotFound("There are no logs at this address.")
    base = ("tenants", str(tenant), "logs", *path)
    parent = hal.path(*base[:-1]) if len(path) > 1 else hal.path("config", "tenants", str(tenant))
    return {
        "tenantId": str(tenant),
        "_links": hal.links(
            self_href=hal.path(*base),
            parent=parent,
            items=[hal.item(name, hal.path(*base, name)) for name in names],
        ),
    }


def read_object(
    store: ObjectStore, *, tenant: UUID, path: tuple[str, ...], file: str, reader: Reader
) -> RawLog:
    """One raw log object, byte for byte.

    Raises:
        NotFound: there is no such object.
    """
    key = logs_prefix(tenant) + "/".join((*path, file))
    record_read(reader, tenant=tenant, key=key[:1024].replace("\0", "␀"))
    if parse_raw_key(key) is None:
        raise NotFound("There is no such log object.")
    try:
        body = store.read(key)
    except (ObjectNotFound, InvalidKey):
        raise NotFound("There is no such log object.") from None
    return RawLog(body, JSON if _is_one_value(body) else NDJSON)


def _belongs(name: str, *, prefix: str, depth: int, is_object: bool) -> bool:
    if depth <= len(_LEVELS):
        return not is_object and _LEVELS[depth - 1].fullmatch(name) is not None
    return is_object and parse_raw_key(prefix + name) is not None


def _is_one_value(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
