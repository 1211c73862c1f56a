"""One raw object's bytes to entries, and what is wrong with them.

Contract: "Query log entry and ``proxy_logs``". A file holds one JSON object, or several as lines or as an
array. A file of which any line is not JSON is set aside whole; a value that is no object, or has a field of
a wrong type, alone.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from logs.columns import COLUMNS, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Text = bytes | memoryview

#: The largest entry taken, in bytes: what the engine is given room to hold at once.
MAX_ENTRY_BYTES: Final = 16 * 1024 * 1024

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
_Object = msgspec.defstruct("Object", [], gc=False)

_decode_entry: Callable[[Text], Any] = msgspec.json.Decoder(_Entry).decode
#: Looks at all of the text, but keeps nothing of it.
_decode_object: Callable[[Text], Any] = msgspec.json.Decoder(_Object).decode
_decode_any = msgspec.json.Decoder().decode
_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_NOT_DECODED: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class BadFile(Exception):
    """A file that is set aside whole; the message says why."""


class Values(NamedTuple):
    """The JSON values of a file in their order.

    ``are_objects`` says that each is an object, and none too large. They may be views of the file.
    """

    texts: Sequence[Text]
    are_objects: bool


def split(body: bytes, *, known_utf8: bool = False) -> Values:
    """Split a file into its values, of which nothing but that they are JSON is checked.

    Raises:
        BadFile: it is empty, or not JSON somewhere.
    """
    if not known_utf8 and not is_utf8(body):
        raise BadFile(_why_not_utf8(body))
    if _is_object(body):
        return Values([body], len(body) <= MAX_ENTRY_BYTES)
    if not body.strip(_SPACE):
        raise BadFile("the file is empty")
    views = _lines(body)
    if are_objects(views):
        return Values(views, are_objects=True)
    if _why_not_json(body) is None:
        is_array = body.lstrip(_SPACE).startswith(b"[")
        texts = list(map(bytes, _decode_array(body))) if is_array else [body]
    else:
        lines = list(map(bytes, views))
        for number, line in enumerate(lines, start=1):
            if _is_object(line) or not line.strip(_SPACE):
                continue
            if (reason := _why_not_json(line)) is not None:
                raise BadFile(f"line {number} is not JSON: {reason}")
        texts = [line for line in lines if line.strip(_SPACE)]
    return Values(texts, are_objects(texts))


def are_objects(texts: Sequence[Text]) -> bool:
    """Whether each is one JSON object, and none too large. That they are UTF-8 is not looked at."""
    try:
        deque(map(_decode_object, texts), maxlen=0)
    except _NOT_DECODED:
        return False
    return max(map(len, texts), default=0) <= MAX_ENTRY_BYTES


def why_wrong(text: Text) -> str | None:
    """What keeps a value from being an entry, or None where it is one."""
    try:
        _decode_entry(text)
    except _NOT_DECODED as error:
        return str(error)
    if len(text) > MAX_ENTRY_BYTES:
        return f"an entry of {len(text)} bytes; at most {MAX_ENTRY_BYTES} are taken"
    return None


def is_utf8(body: bytes) -> bool:
    """Whether all of the text is UTF-8, for which no text is made of it."""
    if body.isascii():
        return True
    bounds = pa.py_buffer(struct.pack("=qq", 0, len(body)))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, bounds, pa.py_buffer(body)]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _lines(body: bytes) -> list[memoryview]:
    view, lines, start = memoryview(body), [], 0
    while (end := body.find(b"\n", start)) >= 0:
        lines.append(view[start:end])
        start = end + 1
    return [*lines, view[start:]] if start < len(body) else lines


def _is_object(text: Text) -> bool:
    try:
        _decode_object(text)
    except _NOT_DECODED:
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


def _why_not_utf8(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        number = body.count(b"\n", 0, error.start) + 1
        return f"line {number} is not JSON: not UTF-8 at byte {error.start} of the file"
    raise AssertionError("it was found not to be UTF-8")
