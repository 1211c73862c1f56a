"""The raw log tree: years down to one object. Contract: "Raw logs".

A listing looks into each child of its level once. Its cost does not depend on the number of objects.
Every read writes its audit row first.
"""

from __future__ import annotations

import io
import re
from codecs import getincrementaldecoder
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final
from uuid import UUID

import msgspec

from logs.audit import Reader, record_read, storable
from logs.layout import logs_prefix, parse_raw_key
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.http.streaming import FileChunks
from tenantadmin.lib.objectstore import InvalidKey, ObjectNotFound

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore import ObjectStore

_CHUNK_BYTES: Final = 1 << 16

_MAX_BYTES: Final = 2 << 20

#: Half of a surrogate pair, which the grammar allows and msgspec does not.
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")

#: Where msgspec's messages name the offset of an error.
_OFFSET: Final = re.compile(r"\(byte (\d+)\)$")

_check: Final = msgspec.json.Decoder(msgspec.Raw).decode


def is_one_value(stream: IO[bytes]) -> bool:
    """Return True if the rest of ``stream`` is one JSON value in UTF-8. Stop reading at the first error.

    If the first 2 MiB are the beginning of a value, the rest is not read, as it would have to be in memory.
    """
    body = bytearray()
    utf8 = getincrementaldecoder("utf-8")()
    parse_at = 0
    try:
        while len(body) < _MAX_BYTES and (chunk := stream.read(_CHUNK_BYTES)):
            utf8.decode(chunk)
            body += chunk
            if len(body) >= parse_at:
                if _is_value(body) is False:
                    return False
                # Parsing starts at the beginning, so twice as much must be there.
                parse_at = 2 * len(body)
        if len(body) >= _MAX_BYTES:
            return _is_value(body) is not False
        utf8.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return _is_value(body) is True


def _is_value(body: bytearray) -> bool | None:
    """Return whether ``body`` is a JSON value; None if it is the beginning of one."""
    try:
        _check(_SURROGATE.sub(rb"\\u0000", body))
    except RecursionError:
        # It is nested too deeply to be checked.
        return True
    except msgspec.DecodeError as error:
        message = str(error)
        offset = _OFFSET.search(message)
        is_at_end = offset is None or int(offset[1]) == len(body)
        return None if is_at_end and "trailing" not in message else False
    return True


JSON: Final = "application/json"

NDJSON: Final = "application/x-ndjson"

OCTETS: Final = "application/octet-stream"

#: Objects up to this size, in bytes, are read into memory. Larger ones are streamed.
_MAX_BYTES_IN_MEMORY: Final = 1 << 20

#: How many objects below a level are searched for a raw log: one page of a listing on S3.
_MAX_SEARCHED: Final = 1000

#: The valid names of the levels: year, month, day, hour.
_LEVELS: Final = (
    re.compile(r"[0-9]{4}"),
    re.compile(r"0[1-9]|1[0-2]"),
    re.compile(r"0[1-9]|[12][0-9]|3[01]"),
    re.compile(r"[01][0-9]|2[0-3]"),
)


@dataclass(frozen=True, slots=True)
class RawLog:
    """One raw log object as stored. ``body`` is bytes if the object is small. ``size`` is in bytes."""

    body: bytes | FileChunks
    size: int
    media_type: str


def list_names(store: ObjectStore, *, tenant: UUID, path: tuple[str, ...], reader: Reader) -> list[str]:
    """Return the sorted names of the children of ``path``: up to four levels, year, month, day and hour.

    Raises:
        NotFound: the level has no data.
    """
    prefix = logs_prefix(tenant) + "".join(f"{segment}/" for segment in path)
    record_read(reader, tenant=tenant, key=prefix)
    names = sorted(_names(store, prefix, depth=len(path)))
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
    record_read(reader, tenant=tenant, key=storable(key)[:1024])
    if parse_raw_key(key) is None:
        raise NotFound("There is no such log object.")
    try:
        with store.open(key) as stored:
            if stored.size <= _MAX_BYTES_IN_MEMORY:
                body = stored.read()
                return RawLog(body, len(body), _media_type(io.BytesIO(body)))
            # This reads 2 MiB at most.
            media_type = _media_type(stored)
        again = store.open(key)
        return RawLog(FileChunks(again, size=again.size), again.size, media_type)
    except (ObjectNotFound, InvalidKey):
        raise NotFound("There is no such log object.") from None


def _media_type(stream: IO[bytes]) -> str:
    return JSON if is_one_value(stream) else NDJSON


def _names(store: ObjectStore, prefix: str, *, depth: int) -> list[str]:
    """Return the levels directly under ``prefix`` that contain logs, or the logs of an hour."""
    folders, objects = store.listdir(prefix)
    if depth == len(_LEVELS):
        return [name for name in objects if parse_raw_key(prefix + name) is not None]
    level = _LEVELS[depth]
    return [name for name in folders if level.fullmatch(name) and _has_logs(store, f"{prefix}{name}/")]


def _has_logs(store: ObjectStore, prefix: str) -> bool:
    for searched, entry in enumerate(store.list(prefix), start=1):
        # A log may follow after all these other objects: better to show an empty level than to hide a log.
        if parse_raw_key(entry.key) is not None or searched == _MAX_SEARCHED:
            return True
    return False
