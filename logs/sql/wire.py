"""What crosses between the service and its query processes, and how: frames over a socket.

A frame is a four-byte length (big-endian), JSON of that length, then the binary body whose length the
JSON gives as ``body``. Pure, and imported on both sides.
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


class ConnectionEnded(Exception):
    """The other side closed before the frame was whole."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """What a process is told before any query: the limits that it puts on itself ahead of time."""

    seconds: float
    memory_bytes: int
    threads: int

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Preparation:
        return cls(**json.loads(data))


@dataclass(frozen=True, slots=True)
class Request:
    """One query: the statement, the files below a folder, and the caps of its result.

    With ``wait`` the process tells which files the statement needs and goes on when it gets a frame.
    """

    statement: str
    folder: str
    files: tuple[str, ...]
    days: tuple[str, ...]
    wait: bool
    seconds: float
    max_rows: int
    max_bytes: int
    max_columns: int

    @property
    def paths(self) -> list[str]:
        """The absolute paths of the files."""
        return [f"{self.folder}/{file}" for file in self.files]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Request:
        return cls(
            statement=document["statement"],
            folder=document["folder"],
            files=tuple(document["files"]),
            days=tuple(document["days"]),
            wait=document["wait"],
            seconds=document["seconds"],
            max_rows=document["max_rows"],
            max_bytes=document["max_bytes"],
            max_columns=document["max_columns"],
        )


def encode(document: dict[str, Any], *, body: bytes | memoryview = b"") -> bytes:
    """Return the head of a frame; the caller sends ``body`` after it."""
    text = json.dumps({**document, "body": len(body)}).encode()
    return _LENGTH.pack(len(text)) + text


def decode_length(data: bytes | bytearray) -> int:
    """Return the length of the JSON that follows."""
    length: int = _LENGTH.unpack(data)[0]
    return length


def decode_head(data: bytes | bytearray) -> dict[str, Any]:
    """Return a frame's JSON; its ``body`` is the length of what follows."""
    document: dict[str, Any] = json.loads(data)
    return document


def read_head(descriptor: int) -> dict[str, Any]:
    """Read a frame's JSON from a blocking descriptor; raises `ConnectionEnded`."""
    return decode_head(read_exactly(descriptor, decode_length(read_exactly(descriptor, LENGTH_BYTES))))


def read_exactly(descriptor: int, length: int) -> bytearray:
    """Read ``length`` bytes from a blocking descriptor; raises `ConnectionEnded`."""
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
    """Write everything to a blocking descriptor, by ``write`` alone: a query process may not ``send``."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
