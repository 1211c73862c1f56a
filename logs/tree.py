"""The raw log tree: years down to one object. Contract: "Raw logs".

A listing costs with the children of its level, not with the objects below: one look into each. Every read is
audited first.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from logs.audit import Reader, record_read
from logs.jsonvalue import is_one_value
from logs.layout import logs_prefix, parse_raw_key
from tenantadmin.core.errors import NotFound
from tenantadmin.http import hal
from tenantadmin.http.streaming import FileChunks
from tenantadmin.objectstore import InvalidKey, ObjectNotFound

if TYPE_CHECKING:
    from uuid import UUID

    from tenantadmin.objectstore import Child, ObjectStore

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"

#: Larger objects, in bytes, are not held whole.
_WHOLE: Final = 1 << 20
#: How many objects below a level are looked at for one that is a log: a page of a listing on S3.
_LOOK: Final = 1000
#: What may stand at each level below the year: month, day, hour.
_LEVELS: Final = (
    re.compile(r"0[1-9]|1[0-2]"),
    re.compile(r"0[1-9]|[12][0-9]|3[01]"),
    re.compile(r"[01][0-9]|2[0-3]"),
)


@dataclass(frozen=True, slots=True)
class RawLog:
    """One raw log object as stored: whole where it is small, its size in bytes, and its media type."""

    body: bytes | FileChunks
    size: int
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
        if _belongs(store, child, prefix=prefix, depth=len(path))
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
        size = store.stat(key).size
        if size <= _WHOLE:
            body = store.read(key)
            return RawLog(body, len(body), _media_type(io.BytesIO(body)))
        # Lines show in the first piece; one value is read twice.
        with store.open(key) as stream:
            media_type = _media_type(stream)
        return RawLog(FileChunks(store.open(key), size=size), size, media_type)
    except (ObjectNotFound, InvalidKey):
        raise NotFound("There is no such log object.") from None


def _media_type(stream: BinaryIO) -> str:
    return JSON if is_one_value(stream) else NDJSON


def _belongs(store: ObjectStore, child: Child, *, prefix: str, depth: int) -> bool:
    """Whether a child is a log object, or a level that leads to one."""
    if depth > len(_LEVELS):
        return child.is_object and parse_raw_key(prefix + child.name) is not None
    if child.is_object or _LEVELS[depth - 1].fullmatch(child.name) is None:
        return False
    for looked, entry in enumerate(store.list(f"{prefix}{child.name}/"), start=1):
        # Behind so many others there may be one: rather a level too many than one that hides its logs.
        if parse_raw_key(entry.key) is not None or looked == _LOOK:
            return True
    return False
