"""One raw object's bytes to entries, each of them checked. Contract: "Query log entry and ``proxy_logs``".

A file holds one JSON object, or several as lines or as an array. A file of which any line is not JSON is
set aside whole; a value that is no object, or has a field of a wrong type, alone.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from logs.columns import COLUMNS, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: The largest entry taken, in bytes: what the engine is given room to hold at once.
MAX_ENTRY_BYTES: Final = 16 * 1024 * 1024

#: Bytes from which on a body is worth a call of Arrow.
_LARGE_BODY: Final = 1 << 16

_SPACE: Final = b" \t\r\n"
_TYPES: Final[dict[SqlType, Any]] = {
    SqlType.VARCHAR: str,
    SqlType.BIGINT: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    SqlType.INTEGER: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    SqlType.BOOLEAN: bool,
}
_Entry = msgspec.defstruct(
    "Entry",
    [
        (column.name, msgspec.Raw if column.json_text else _TYPES[column.type] | None, None)
        for column in COLUMNS
    ],
    gc=False,
)
_decode_entry: Callable[[bytes], Any] = msgspec.json.Decoder(_Entry).decode
_decode_any = msgspec.json.Decoder().decode
_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode


@dataclass(frozen=True, slots=True)
class Rejected:
    """What was set aside and why: one entry, or with ``position`` None the whole file."""

    position: int | None
    reason: str


class Entries(NamedTuple):
    """The good entries of a file in their order, as JSON text, with what decides their order and identity."""

    texts: list[bytes]
    timestamps: list[int | None]
    log_ids: list[str | None]


def read_entries(body: bytes) -> tuple[Entries, list[Rejected]]:
    """Split a file into its entries and check each against the columns' types."""
    try:
        if not _is_utf8(body):
            body.decode()  # fields that are not decoded have to be JSON too: say where they are not
        entry = _decode_entry(body)
    except UnicodeDecodeError as error:
        return Entries([], [], []), [Rejected(None, _not_utf8(body, error))]
    except (msgspec.MsgspecError, RecursionError):
        return _read_other(body)
    if len(body) > MAX_ENTRY_BYTES:
        return Entries([], [], []), [Rejected(0, _too_large(body))]
    return Entries([body], [entry.timestamp], [entry.logId]), []


def _read_other(body: bytes) -> tuple[Entries, list[Rejected]]:
    """A file that is anything but one good entry; it is UTF-8."""
    if not body.strip(_SPACE):
        return Entries([], [], []), [Rejected(None, "the file is empty")]
    if _why_not_json(body) is None:
        is_array = body.lstrip(_SPACE).startswith(b"[")
        return _check_values(map(bytes, _decode_array(body)) if is_array else [body])
    lines = body.split(b"\n")
    try:
        return _check_values(line for line in lines if line.strip(_SPACE))
    except _NotJson as error:
        number = next(number for number, line in enumerate(lines, start=1) if line is error.line)
        return Entries([], [], []), [Rejected(None, f"line {number} is not JSON: {error}")]


def _check_values(values: Iterable[bytes]) -> tuple[Entries, list[Rejected]]:
    """Raises `_NotJson` where one is no JSON value at all."""
    good = Entries([], [], [])
    rejected: list[Rejected] = []
    for position, value in enumerate(values):
        try:
            entry = _decode_entry(value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            # Decoding stops at the first field of a wrong type: what follows may still be no JSON.
            malformed = _why_not_json(value)
            if malformed is not None:
                raise _NotJson(malformed, value) from None
            rejected.append(Rejected(position, str(error)))
            continue
        if len(value) > MAX_ENTRY_BYTES:
            rejected.append(Rejected(position, _too_large(value)))
            continue
        good.texts.append(value)
        good.timestamps.append(entry.timestamp)
        good.log_ids.append(entry.logId)
    return good, rejected


def _is_utf8(body: bytes) -> bool:
    if body.isascii():
        return True
    if len(body) < _LARGE_BODY:
        try:
            body.decode()
        except UnicodeDecodeError:
            return False
        return True
    # Arrow looks at it without making a text of it.
    bounds = pa.py_buffer(struct.pack("=qq", 0, len(body)))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, bounds, pa.py_buffer(body)]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _why_not_json(text: bytes) -> str | None:
    try:
        _decode_any(text)
    except msgspec.DecodeError as error:
        return str(error).removeprefix("JSON is malformed: ")
    except RecursionError:
        return "nested too deeply"
    return None


class _NotJson(Exception):
    def __init__(self, reason: str, line: bytes) -> None:
        super().__init__(reason)
        self.line = line


def _not_utf8(body: bytes, error: UnicodeDecodeError) -> str:
    number = body.count(b"\n", 0, error.start) + 1
    return f"line {number} is not JSON: not UTF-8 at byte {error.start} of the file"


def _too_large(value: bytes) -> str:
    return f"an entry of {len(value)} bytes; at most {MAX_ENTRY_BYTES} are taken"
