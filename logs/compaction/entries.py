"""One raw object's bytes to entries, and what is wrong with them.

Contract: "Query log entry and ``proxy_logs``". A file holds one JSON object, or several as lines or as an
array. A file of which any line is not JSON is set aside whole; a value that is no object, has a field of a
wrong type (every time, where it stands twice), nests too deeply or holds half a surrogate pair, alone.
"""

from __future__ import annotations

import json
import re
import struct
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, pairwise
from operator import length_hint
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, overload

import msgspec
import pyarrow as pa

from logs.columns import COLUMNS, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Text = bytes | memoryview
    _Decoder = msgspec.json.Decoder[Any]

#: The largest entry taken, in bytes: what the engine is given room to hold at once.
MAX_ENTRY_BYTES: Final = 16 * 1024 * 1024

#: So many texts at least are worth a decoder for the order of their fields.
_WORTH_AN_ORDER: Final = 200
#: Bytes of texts that are looked at together.
_BLOCK_BYTES: Final = 128 << 10
#: Texts that are looked at one by one before another thread may have the interpreter.
_AT_ONCE: Final = 500

_SPACE: Final = b" \t\r\n"
#: What the decoder says of a text that ends too early, and where it says where one is wrong.
_TRUNCATED: Final = "Input data was truncated"
_PLACE: Final = re.compile(r" \(byte (\d+)\)$")
_ENDS: Final = frozenset({b"}\n", b"}\r"})
_TYPES: Final[dict[SqlType, Any]] = {
    SqlType.VARCHAR: str,
    SqlType.BIGINT: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    SqlType.INTEGER: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    SqlType.BOOLEAN: bool,
}
_FIELDS: Final[dict[str, Any]] = {
    column.name: msgspec.Raw if column.json_text else _TYPES[column.type] | None for column in COLUMNS
}
_Object = msgspec.defstruct("Object", [], gc=False)

#: Looks at all of the text, but keeps nothing of it.
_decode_object: Callable[[Text], Any] = msgspec.json.Decoder(_Object).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_any = msgspec.json.Decoder().decode
_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_NOT_DECODED: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class BadFile(Exception):
    """A file that is set aside whole; the message says why."""


class Lines(Sequence[memoryview]):
    """The lines of a file, where they stand in it.

    Attributes:
        starts: of each line, and behind the break of the last, be there one or not.
    """

    def __init__(self, body: bytes, starts: array[int]) -> None:
        self._body = memoryview(body)
        self.starts = starts

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, place: int) -> memoryview: ...
    @overload
    def __getitem__(self, place: slice) -> list[memoryview]: ...
    def __getitem__(self, place: int | slice) -> memoryview | list[memoryview]:
        if isinstance(place, slice):
            return [self[number] for number in range(len(self))[place]]
        number = range(len(self))[place]
        return self._body[self.starts[number] : self.starts[number + 1] - 1]


class Values(NamedTuple):
    """The JSON values of a file in their order.

    Attributes:
        texts: the values; `Lines` where they are the lines of the file, all of them.
        wrong: by their places in order, why some are no entries.
    """

    texts: Sequence[Text]
    wrong: Mapping[int, str]


def split(body: bytes, *, known_utf8: bool = False) -> Values:
    """Split a file into its values, and check each.

    Raises:
        BadFile: it is empty, or not JSON somewhere.
    """
    if not known_utf8 and not is_utf8(body):
        raise BadFile(_why_not_utf8(body))
    lines = Lines(body, _starts_of_lines(body))
    refused = find_refused(body, lines.starts)
    if lines and not refused:
        return Values(lines, {})
    if not body.strip(_SPACE):
        raise BadFile("the file is empty")
    texts: Sequence[Text]
    if _why_not_json(body) is None:
        is_array = body.lstrip(_SPACE).startswith(b"[")
        texts = list(map(bytes, _decode_array(body))) if is_array else [body]
        return Values(texts, find_wrong(texts))
    if (elements := _elements(body)) is not None:
        return Values(elements, find_wrong(elements))
    return _split_lines(body, lines, refused)


def _split_lines(body: bytes, lines: Lines, refused: Sequence[int]) -> Values:
    blank = {place for place in refused if not bytes(lines[place]).strip(_SPACE)}
    for place in refused:
        line = bytes(lines[place])
        if place in blank or _is_object(line) or _is_json(line) or (reason := _why_not_json(line)) is None:
            continue
        may_go_on = len(refused) == len(lines) or line.lstrip(_SPACE).startswith(b"[")
        if reason == _TRUNCATED and may_go_on and blank.issuperset(range(place)):
            # One value over several lines, of which this is the first.
            if _is_json(body):
                return Values([body], find_wrong([body]))
            raise BadFile(_why_not_one_value(body))
        raise BadFile(f"line {place + 1} is not JSON: {reason}")
    wrong = _reasons(lines, (place for place in refused if place not in blank))
    if not blank:
        return Values(lines, wrong)
    kept = [place for place in range(len(lines)) if place not in blank]
    reasons = {number: wrong[place] for number, place in enumerate(kept) if place in wrong}
    return Values([lines[place] for place in kept], reasons)


def find_wrong(texts: Sequence[Text]) -> dict[int, str]:
    """The places of what is no entry, in order, and why. That the texts are UTF-8 is not looked at."""
    decoder = _decoder_for(texts[0] if len(texts) >= _WORTH_AN_ORDER else b"")
    return _reasons(texts, _find_refused_alone(texts, decoder))


def find_refused(strung: bytes, starts: array[int]) -> list[int]:
    """The places of texts that are no entry each, in order.

    Args:
        strung: the texts, UTF-8, with a line break between two.
        starts: where each begins, and one more would behind a line break.
    """
    refused: list[int] = []
    count, first = len(starts) - 1, 0
    view = memoryview(strung)
    decoder = _decoder_for(strung[: starts[1] - 1] if count >= _WORTH_AN_ORDER else b"")
    while first < count:
        # A block, which stays in the processor's cache, is decoded at once.
        end = bisect_left(starts, starts[first] + _BLOCK_BYTES, first + 1, count)
        bounds = starts[first : end + 1]
        if not (
            _are_apart(strung, bounds) and _are_entries(view[bounds[0] : bounds[-1]], decoder, end - first)
        ):
            texts = [strung[start : behind - 1] for start, behind in pairwise(bounds)]
            refused += [first + place for place in _find_refused_alone(texts, decoder)]
        first = end
    return refused


def _are_apart(strung: bytes, bounds: array[int]) -> bool:
    """Whether each text begins and ends as an object does, so that no value goes on from one to the next."""
    for start, behind in pairwise(bounds):
        if not strung.startswith(b"{", start):
            return False
        # A line break that is the text's own may stand behind.
        if not strung.startswith(b"}", behind - 2) and strung[behind - 3 : behind - 1] not in _ENDS:
            return False
    return True


def _are_entries(strung: memoryview, decoder: _Decoder, count: int) -> bool:
    """Whether so many texts, in each of which some value stands, are an entry each."""
    try:
        # That they are lines is not looked at: it takes one value after another, with space between or none.
        return len(strung) <= MAX_ENTRY_BYTES and len(decoder.decode_lines(strung)) == count
    except _NOT_DECODED:
        return False


def _find_refused_alone(texts: Sequence[Text], decoder: _Decoder) -> list[int]:
    refused: list[int] = []
    rest = iter(texts)
    while length_hint(rest):
        try:
            deque(map(decoder.decode, islice(rest, _AT_ONCE)), maxlen=0)
        except _NOT_DECODED:
            # The iterator stands behind the one that failed.
            refused.append(len(texts) - length_hint(rest) - 1)
    if max(map(len, texts), default=0) > MAX_ENTRY_BYTES:
        too_long = (place for place, text in enumerate(texts) if len(text) > MAX_ENTRY_BYTES)
        refused = sorted({*refused, *too_long})
    return refused


def _reasons(texts: Sequence[Text], refused: Iterable[int]) -> dict[int, str]:
    return {place: _why_refused(bytes(texts[place])) for place in refused}


@lru_cache(maxsize=16)
def _entry_decoder(order: tuple[str, ...]) -> _Decoder:
    """Decodes entries, in a third less time where their fields stand in this order.

    Each field is looked for from where the one before it was found.
    """
    names = dict.fromkeys([*order, *_FIELDS])
    entry = msgspec.defstruct("Entry", [(name, _FIELDS[name], None) for name in names], gc=False)
    return msgspec.json.Decoder(entry)


def _decoder_for(text: Text) -> _Decoder:
    """What decodes entries whose fields stand in the order of this one's."""
    try:
        return _entry_decoder(tuple(name for name in _decode_members(text) if name in _FIELDS))
    except _NOT_DECODED:
        return _entry_decoder(())


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


def _starts_of_lines(body: bytes) -> array[int]:
    starts = array("q", [0])
    find, at = body.find, 0
    while at := find(b"\n", at) + 1:
        starts.append(at)
    if starts[-1] < len(body):
        starts.append(len(body) + 1)
    return starts


def _is_object(text: Text) -> bool:
    try:
        _decode_object(text)
    except _NOT_DECODED:
        return False
    return True


def _why_refused(text: bytes) -> str:
    try:
        _entry_decoder(()).decode(text)
    except RecursionError:
        return "nested too deeply"
    except msgspec.ValidationError as error:
        return str(error)
    except _NOT_DECODED as error:
        if _is_json(text):
            return "half of a surrogate pair stands in it alone, which is no character"
        return str(error)
    if len(text) > MAX_ENTRY_BYTES:
        return f"an entry of {len(text)} bytes; at most {MAX_ENTRY_BYTES} are taken"
    # At the very limit, which counts the calls that lead to the decoder too.
    return "nested too deeply"


def _is_json(text: bytes) -> bool:
    """Whether it is JSON by the grammar alone, which allows half a surrogate pair, and any depth."""
    try:
        _load(text)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _elements(text: bytes) -> list[bytes] | None:
    """The elements, written anew, of an array that the grammar alone allows; None of what is none."""
    if not text.lstrip(_SPACE).startswith(b"["):
        return None
    try:
        return [json.dumps(element).encode() for element in _load(text)]
    except (ValueError, RecursionError):
        return None


def _load(text: bytes) -> Any:
    return json.loads(text.decode(), parse_constant=_refuse)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _why_not_json(text: bytes) -> str | None:
    """Why the decoder does not take it, which is more than the grammar asks."""
    try:
        _decode_any(text)
    except msgspec.DecodeError as error:
        return str(error).removeprefix("JSON is malformed: ")
    except RecursionError:
        return "nested too deeply"
    return None


def _why_not_one_value(body: bytes) -> str:
    reason = _why_not_json(body) or ""
    place = _PLACE.search(reason)
    end = int(place[1]) if place else len(body.rstrip(_SPACE))
    line = body.count(b"\n", 0, end) + 1
    reason = _PLACE.sub(r" at byte \1 of the file", reason)
    return f"line {line} is not JSON: {reason}"


def _why_not_utf8(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        number = body.count(b"\n", 0, error.start) + 1
        return f"line {number} is not JSON: not UTF-8 at byte {error.start} of the file"
    raise AssertionError("it was found not to be UTF-8")
