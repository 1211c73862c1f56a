"""The messages of PostgreSQL's protocol 3.0. Imports no Django."""

from __future__ import annotations

import asyncio
import contextlib
import select
import ssl
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

SSL_REQUEST: Final = 80877103
GSS_REQUEST: Final = 80877104
CANCEL_REQUEST: Final = 80877102
PROTOCOL: Final = 3 << 16
#: The largest message of a client: a statement of 64 KiB, or many values.
MAX_MESSAGE: Final = 1 << 20
#: Of one statement.
MAX_PARAMETERS: Final = 1000
#: Of a Bind: a result has at most 2,000 columns.
_MAX_FORMATS: Final = 2000
#: As in PostgreSQL.
_MAX_STARTUP: Final = 10_000
#: How long a client may take to read what it was sent.
READ_SECONDS: Final = 60


class ProtocolError(Exception):
    """A message is malformed or too large. The connection ends."""


#: What a connection raises that the other side has ended, or on which it is too slow or speaks wrongly.
LOST: Final = (OSError, TimeoutError, asyncio.IncompleteReadError, ProtocolError)


class Message(NamedTuple):
    """The kind of a message, one byte, and what follows its length."""

    kind: bytes
    body: bytes = b""

    def pack(self) -> bytes:
        return self.kind + struct.pack("!i", len(self.body) + 4) + self.body


class Stream:
    """Messages on a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, *, longest: int = MAX_MESSAGE) -> Message:
        """Read a message.

        Raises:
            ProtocolError: it is longer than ``longest`` bytes. They are not read.
            asyncio.IncompleteReadError: the other side has closed.
        """
        kind, length = struct.unpack("!ci", await self._reader.readexactly(5))
        if not 4 <= length <= longest + 4:
            raise ProtocolError(f"A message has at most {longest} bytes.")
        return Message(kind, await self._reader.readexactly(length - 4))

    async def read_startup(self) -> tuple[int, bytes]:
        """Read a message without a kind, and return its code and what follows.

        Raises:
            ProtocolError: it is too long.
        """
        length, code = struct.unpack("!ii", await self._reader.readexactly(8))
        if not 8 <= length <= _MAX_STARTUP:
            raise ProtocolError("The startup message is too long.")
        return code, await self._reader.readexactly(length - 8)

    def is_gone(self) -> bool:
        """Return True if the other side has closed, also while what it has sent before is not read."""
        if self._writer.is_closing():
            return True
        poll = select.poll()
        poll.register(self._writer.get_extra_info("socket").fileno(), select.POLLRDHUP)
        return bool(poll.poll(0))

    async def start_tls(self, tls: ssl.SSLContext) -> None:
        """Grant a client's request for TLS."""
        self._writer.write(b"S")
        await self._writer.start_tls(tls)

    async def send(self, *messages: Message) -> None:
        await self.send_bytes(b"".join(message.pack() for message in messages))

    async def send_bytes(self, data: bytes | memoryview) -> None:
        """Send packed messages, and wait while the other side does not read.

        Raises:
            TimeoutError: it has read too little for a minute.
        """
        self._writer.write(data)
        async with asyncio.timeout(READ_SECONDS):
            await self._writer.drain()

    def tell(self, message: Message) -> None:
        """Send a message without waiting until it is read."""
        self._writer.write(message.pack())

    def close(self) -> None:
        """Close at once. What was not sent is lost."""
        self._writer.close()
        self._writer.transport.abort()

    async def end(self, code: str, text: str, hint: str = "") -> None:
        """Tell the client why the connection ends, if the client reads."""
        with contextlib.suppress(OSError, TimeoutError):
            await self.send(error(code, text, severity="FATAL", hint=hint))
            await self.finish()

    async def finish(self) -> None:
        """Close when what was sent has arrived."""
        self._writer.close()
        async with asyncio.timeout(READ_SECONDS):
            await self._writer.wait_closed()


class Body:
    """Reads the fields of a message.

    Raises:
        ProtocolError: the message ends before a field does.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def text(self) -> bytes:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise ProtocolError("A text in a message has no end.")
        found, self._at = self._data[self._at : end], end + 1
        return found

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self._data) - self._at:
            raise ProtocolError("A message is too short.")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, code: str = "h") -> int:
        """Read a big-endian number: ``h`` has two bytes, ``i`` four, ``I`` four without a sign."""
        value: int = struct.unpack(f"!{code}", self.take(struct.calcsize(code)))[0]
        return value

    def numbers(self, code: str = "h") -> tuple[int, ...]:
        """Read a count, and so many numbers."""
        layout = f"!{self.number('H')}{code}"
        return struct.unpack(layout, self.take(struct.calcsize(layout)))


@dataclass(frozen=True, slots=True)
class Bind:
    """A Bind. ``formats`` and ``result_formats`` are empty, one for all, or one for each: 1 is binary."""

    portal: bytes
    statement: bytes
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]

    @classmethod
    def read(cls, data: bytes) -> Bind:
        body = Body(data)
        portal, statement, formats = body.text(), body.text(), body.numbers()
        if (count := body.number("H")) > MAX_PARAMETERS:
            raise ProtocolError(f"A statement has at most {MAX_PARAMETERS} parameters.")
        values = tuple(None if (size := body.number("i")) < 0 else body.take(size) for _ in range(count))
        # A portal keeps them.
        if max(len(formats), len(result_formats := body.numbers())) > _MAX_FORMATS:
            raise ProtocolError(f"A message names at most {_MAX_FORMATS} formats.")
        return cls(portal, statement, formats, values, result_formats)


def format_of(formats: Sequence[int], place: int) -> int:
    """Return the format of a value or a column: 0 is text, 1 binary."""
    if not formats:
        return 0
    return formats[0] if len(formats) == 1 else formats[place] if place < len(formats) else 0


def read_parameters(data: bytes) -> dict[str, str]:
    """Return the parameters of a startup message.

    Raises:
        ProtocolError: it is malformed.
    """
    body, parameters = Body(data), dict[str, str]()
    try:
        while name := body.text():
            parameters[name.decode()] = body.text().decode()
    except UnicodeDecodeError as error:
        raise ProtocolError("The startup message is not UTF-8.") from error
    return parameters


def pack_request(code: int, data: bytes = b"") -> bytes:
    """Return a message of the startup, which has no kind."""
    return struct.pack("!ii", len(data) + 8, code) + data


def pack_startup(parameters: Mapping[str, str]) -> bytes:
    pairs = "".join(f"{name}\0{value}\0" for name, value in parameters.items())
    return pack_request(PROTOCOL, pairs.encode() + b"\0")


def pack_cancel(key: bytes) -> bytes:
    return pack_request(CANCEL_REQUEST, key)


def error(code: str, text: str, *, severity: str = "ERROR", hint: str = "", kind: bytes = b"E") -> Message:
    """Return an ErrorResponse. ``code`` is the SQLSTATE."""
    fields = {"S": severity, "V": severity, "C": code, "M": text.replace("\0", ""), "H": hint}
    body = "".join(f"{name}{value}\0" for name, value in fields.items() if value)
    return Message(kind, body.encode(errors="replace") + b"\0")


def warning(code: str, text: str) -> Message:
    """Return a NoticeResponse."""
    return error(code, text, severity="WARNING", kind=b"N")


def complete(tag: str) -> Message:
    return Message(b"C", tag.encode() + b"\0")


def parameter_status(name: str, value: str) -> Message:
    return Message(b"S", f"{name}\0{value}\0".encode())


def row_description(fields: Sequence[tuple[str, int, int]], formats: Sequence[int]) -> Message:
    """Return a RowDescription of columns: name, OID and size of the type, which is -1 if that varies."""
    body = b"".join(
        name.encode(errors="replace").replace(b"\0", b"")
        + b"\0"
        + struct.pack("!ihihih", 0, 0, oid, size, -1, format_of(formats, place))
        for place, (name, oid, size) in enumerate(fields)
    )
    return Message(b"T", struct.pack("!H", len(fields)) + body)


def parameter_description(oids: Sequence[int]) -> Message:
    return Message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))
