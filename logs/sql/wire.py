"""The messages between the service and its query processes: frames over a socket.

A frame is a four-byte length (big-endian), a head of JSON of that length, then a binary body. The JSON gives
the length of the body as ``body``. Both sides import this module; it imports no Django.
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import asdict, dataclass
from typing import Any, Final

_LENGTH: Final = struct.Struct("!I")
LENGTH_BYTES: Final = _LENGTH.size
_CHUNK: Final = 1 << 20

#: The kinds of answers after which a process may run another query.
ORDINARY_KINDS: Final = frozenset({"result", "rejected", "failed", "translated", "not translated"})


class ConnectionEnded(Exception):
    """The other side closed the socket before the frame was complete."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """The limits that a query process puts on itself before it gets a query.

    Attributes:
        seconds: the longest query, which determines the limit of processor time.
        idle_seconds: how long it waits for another query of the same tenant; 0 if it runs only one.
        earlier_seconds: the processor time that queries before the last one may use.
    """

    seconds: float
    memory_bytes: int
    threads: int
    idle_seconds: float = 0
    earlier_seconds: float = 0

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> ProcessLimits:
        return cls(**json.loads(data))


@dataclass(frozen=True, slots=True)
class Request:
    """One query: the statement, the files below a folder, and the limits of its result.

    If ``translate`` is true, the process answers with the statement for Spark, and reads no file.
    If ``wait`` is true, the process answers which files the statement needs. It continues when the service
    has sent another frame. For ``has_positions``, see `protocol.LogSource`.
    """

    statement: str
    folder: str
    files: tuple[str, ...]
    days: tuple[str, ...]
    wait: bool
    has_positions: bool
    seconds: float
    max_rows: int
    max_bytes: int
    max_columns: int
    translate: bool = False

    @property
    def paths(self) -> list[str]:
        """The absolute paths of the files."""
        return [f"{self.folder}/{file}" for file in self.files]

    def as_json(self) -> dict[str, Any]:
        # `dataclasses.asdict` would copy each path of a long history.
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Request:
        fields = {name: document[name] for name in cls.__slots__}
        return cls(**{**fields, "files": tuple(fields["files"]), "days": tuple(fields["days"])})


def encode(document: dict[str, Any], *, body: bytes | memoryview = b"") -> bytes:
    """Return the head of a frame; the caller sends ``body`` after it."""
    text = json.dumps({**document, "body": len(body)}).encode()
    return _LENGTH.pack(len(text)) + text


def decode_length(data: bytes | bytearray) -> int:
    """Return the length of a frame's JSON."""
    length: int = _LENGTH.unpack(data)[0]
    return length


def decode_head(data: bytes | bytearray) -> dict[str, Any]:
    """Return a frame's JSON. Its ``body`` is the length of the binary body that follows."""
    document: dict[str, Any] = json.loads(data)
    return document


def read_head(descriptor: int) -> dict[str, Any]:
    """Read a frame's JSON from a blocking descriptor.

    Raises:
        ConnectionEnded: the other side closed the socket.
    """
    return decode_head(read_exactly(descriptor, decode_length(read_exactly(descriptor, LENGTH_BYTES))))


def read_exactly(descriptor: int, length: int) -> bytearray:
    """Read ``length`` bytes from a blocking descriptor.

    Raises:
        ConnectionEnded: the other side closed the socket.
    """
    data = bytearray(length)
    view = memoryview(data)
    read = 0
    while read < length:
        count = os.readv(descriptor, [view[read : read + _CHUNK]])
        if count == 0:
            raise ConnectionEnded
        read += count
    return data


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write everything to a blocking descriptor. Query processes may call ``write``, but not ``send``."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
