"""The raw log tree: years down to one object. Contract: "Raw logs".

A listing looks once into each child of its level: its cost does not grow with the number of objects below.
Every read is audited first.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

from logs.audit import Reader, record_read
from logs.jsonvalue import is_one_value
from logs.layout import logs_prefix, parse_raw_key
from tenantadmin.core.errors import NotFound
from tenantadmin.http.streaming import FileChunks
from tenantadmin.objectstore import InvalidKey, ObjectNotFound

if TYPE_CHECKING:
    from uuid import UUID

    from tenantadmin.objectstore import Child, ObjectStore

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"

#: Larger objects, in bytes, are not held whole.
_WHOLE: Final = 1 << 20
#: How many objects below a level are searched for a log: one page of a listing on S3.
_LOOK: Final = 1000
#: The names that each level below the year may have: month, day, hour.
_LEVELS: Final = (
    re.compile(r"0[1-9]|1[0-2]"),
    re.compile(r"0[1-9]|[12][0-9]|3[01]"),
    re.compile(r"[01][0-9]|2[0-3]"),
)


@dataclass(frozen=True, slots=True)
class RawLog:
    """One raw log object as stored; ``body`` is bytes where it is small, ``size`` is in bytes."""

    body: bytes | FileChunks
    size: int
    media_type: str


def list_names(store: ObjectStore, *, tenant: UUID, path: tuple[str, ...], reader: Reader) -> list[str]:
    """Return the names of the children of ``path`` (year, month, day, hour: as many as are given), in order.

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
    return names


def read_object(
    store: ObjectStore, *, tenant: UUID, path: tuple[str, ...], file: str, reader: Reader
) -> RawLog:
    """Return one raw log object, byte for byte.

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
        # Reads the first piece of an object of lines, and all of an object that is one value.
        with store.open(key) as stream:
            media_type = _media_type(stream)
        return RawLog(FileChunks(store.open(key), size=size), size, media_type)
    except (ObjectNotFound, InvalidKey):
        raise NotFound("There is no such log object.") from None


def _media_type(stream: BinaryIO) -> str:
    return JSON if is_one_value(stream) else NDJSON


def _belongs(store: ObjectStore, child: Child, *, prefix: str, depth: int) -> bool:
    """Return True if a child is a log object, or a level above one."""
    if depth > len(_LEVELS):
        return child.is_object and parse_raw_key(prefix + child.name) is not None
    if child.is_object or _LEVELS[depth - 1].fullmatch(child.name) is None:
        return False
    for looked, entry in enumerate(store.list(f"{prefix}{child.name}/"), start=1):
        # After so many other objects a log may still follow: better one level too many than hidden logs.
        if parse_raw_key(entry.key) is not None or looked == _LOOK:
            return True
    return False
