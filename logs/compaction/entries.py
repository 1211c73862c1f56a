"""Split a raw object into log entries, and find invalid ones.

Contract: "Query log entry and ``proxy_logs``". A file holds one JSON object, or several as lines or as an
array. It may begin with a byte order mark, and be compressed by gzip. If any line is not JSON, the whole file
is quarantined. A single value is quarantined if it is not an object, has a field of a wrong type, is nested
too deeply or contains an unpaired surrogate.

Some values are entries after a correction: of a repeated field the last value counts, 12.0 is the integer 12,
and a timestamp that no date holds is null. Where the times near the day are known, entries without any column
are quarantined too, and timestamps more than two days away are listed; those entries stay.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
import zlib
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, islice, pairwise
from operator import length_hint
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

import msgspec
import pyarrow as pa

from logs.columns import COLUMNS
from logs.compaction.convert import (
    DECODE_ERRORS,
    MAX_ENTRY_BYTES,
    corrected_entry,
    decode_members,
    decoder_for,
    entry_decoder,
)

if TYPE_CHECKING:
    from logs.compaction.convert import Decoder, JsonBytes

#: The most bytes of a compressed file when it is unpacked.
MAX_UNPACKED_BYTES: Final = 256 << 20
#: The number of values from which a decoder for the order of their fields is worth its cost.
_MIN_VALUES_FOR_OWN_DECODER: Final = 200
#: Bytes of values that are decoded in one call. They stay in the processor's cache.
_BLOCK_BYTES: Final = 128 << 10
#: Values that are decoded before another thread may run.
_DECODED_AT_ONCE: Final = 500

_WHITESPACE: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"
#: A byte order mark at the beginning of a file, or of a line where files were joined.
_BOMS: Final = re.compile(rb"(?:^|(?<=\n))\xef\xbb\xbf")
_GZIP: Final = b"\x1f\x8b"
#: msgspec's message for JSON that ends too early, and the pattern of an error's offset in its messages.
_TRUNCATED: Final = "Input data was truncated"
_ERROR_OFFSET: Final = re.compile(r" \(byte (\d+)\)$")
_ENDS_BEFORE_BREAK: Final = frozenset({b"}\n", b"}\r"})

COLUMN_NAMES: Final = frozenset(column.name for column in COLUMNS)
#: The keys, and characters of a key, that the reason of an entry without a column names.
_MAX_KEYS: Final = 10
_MAX_KEY: Final = 40
_WRONG_TYPE: Final = re.compile(
    r"Expected `(?P<expected>[^`]+)`(?:, got `(?P<got>[^`]+)`| (?P<limit>[<>]= -?\d+))?"
    r"(?: - at `\$\.(?P<field>[^`]+)`)?"
)
_TYPES: Final = {
    "int": "an integer",
    "float": "a number with a fraction",
    "str": "text",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}

_AnyObject = msgspec.defstruct("_AnyObject", [], gc=False)

#: Checks the syntax of an object and keeps none of its fields.
_check_object: Callable[[JsonBytes], Any] = msgspec.json.Decoder(_AnyObject).decode
_decode_any = msgspec.json.Decoder().decode
_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode


class BadFile(Exception):
    """The whole file is quarantined; the message says why."""


class Lines(Sequence[memoryview]):
    """The lines of a file, as views of its bytes.

    Attributes:
        content: the file, unpacked and without byte order marks.
        starts: the offset of each line, and last the offset at which another line would start.
    """

    def __init__(self, content: bytes, starts: array[int]) -> None:
        self.content = content
        self.starts = starts

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> memoryview: ...
    @overload
    def __getitem__(self, index: slice) -> list[memoryview]: ...
    def __getitem__(self, index: int | slice) -> memoryview | list[memoryview]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        number = range(len(self))[index]
        return memoryview(self.content)[self.starts[number] : self.starts[number + 1] - 1]


class SplitFile(NamedTuple):
    """The JSON values of a file, in order.

    Attributes:
        values: the values; `Lines` if every line of the file is one value.
        errors: by index in ascending order, what is wrong with some values.
        corrected: by index, the entry to read in place of a value. If it has an error too, it is read all the
            same.
    """

    values: Sequence[JsonBytes]
    errors: Mapping[int, str]
    corrected: Mapping[int, bytes]


def split(body: bytes, *, is_known_utf8: bool = False, times: range | None = None) -> SplitFile:
    """Split a file into its JSON values, and check each.

    ``times`` are the timestamps that are near the file's prefix.

    Raises:
        BadFile: the file is empty, cannot be unpacked, or some line is not JSON.
    """
    if body.startswith(_GZIP):
        body, is_known_utf8 = _unpack(body), False
    if _BOM in body:
        body = _BOMS.sub(b"", body)
    if not is_known_utf8 and not is_utf8(body):
        raise BadFile(_explain_not_utf8(body))
    lines = Lines(body, _starts_of_lines(body))
    invalid = find_invalid(body, lines.starts, times=times)
    if lines and not invalid:
        return SplitFile(lines, {}, {})
    if not body.strip(_WHITESPACE):
        raise BadFile("the file is empty")
    values: Sequence[JsonBytes]
    if _json_error(body) is None:
        is_array = body.lstrip(_WHITESPACE).startswith(b"[")
        values = list(map(bytes, _decode_array(body))) if is_array else [body]
        return check_values(values, times=times)
    if (elements := _array_elements(body)) is not None:
        return check_values(elements, times=times)
    return _split_lines(body, lines, invalid, times)


def _split_lines(body: bytes, lines: Lines, invalid: Sequence[int], times: range | None) -> SplitFile:
    blank = {index for index in invalid if not bytes(lines[index]).strip(_WHITESPACE)}
    for index in invalid:
        line = bytes(lines[index])
        if index in blank or _is_object(line) or _is_json(line) or (error := _json_error(line)) is None:
            continue
        may_continue = len(invalid) == len(lines) or line.lstrip(_WHITESPACE).startswith(b"[")
        if error == _TRUNCATED and may_continue and blank.issuperset(range(index)):
            # This is the first line of one value that has several lines.
            if _is_json(body):
                return check_values([body], times=times)
            raise BadFile(_explain_broken_value(body))
        raise BadFile(f"line {index + 1} is not JSON: {error}")
    if blank:
        entries = [lines[index] for index in range(len(lines)) if index not in blank]
        return check_values(entries, times=times)
    return _correct(lines, invalid, times)


def check_values(values: Sequence[JsonBytes], *, times: range | None = None) -> SplitFile:
    """Return the values with their errors and corrections. All values must be UTF-8."""
    decoder = decoder_for(values[0] if len(values) >= _MIN_VALUES_FOR_OWN_DECODER else b"")
    return _correct(values, _find_invalid_one_by_one(values, decoder, times), times)


def _unpack(body: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
            unpacked = file.read(MAX_UNPACKED_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BadFile(f"gzip cannot unpack it: {error}") from error
    if len(unpacked) > MAX_UNPACKED_BYTES:
        raise BadFile(f"it has more than {MAX_UNPACKED_BYTES >> 20} MiB when it is unpacked")
    return unpacked


def find_invalid(content: bytes, starts: array[int], *, times: range | None = None) -> list[int]:
    """Return the indexes of texts that are not exactly one log entry, in ascending order.

    Args:
        times: also return entries with a timestamp that is none of these, and those that may have no column.
        content: the texts in UTF-8, with a line break between two.
        starts: the offset of each text, and last the offset at which another one would start.
    """
    invalid: list[int] = []
    count, first = len(starts) - 1, 0
    view = memoryview(content)
    decoder = decoder_for(content[: starts[1] - 1] if count >= _MIN_VALUES_FOR_OWN_DECODER else b"")
    while first < count:
        end = bisect_left(starts, starts[first] + _BLOCK_BYTES, first + 1, count)
        bounds = starts[first : end + 1]
        if not (
            _look_like_objects(content, bounds)
            and _holds_entries(view[bounds[0] : bounds[-1]], decoder, count=end - first, times=times)
        ):
            texts = [content[start : following - 1] for start, following in pairwise(bounds)]
            invalid += [first + index for index in _find_invalid_one_by_one(texts, decoder, times)]
        first = end
    return invalid


def _look_like_objects(content: bytes, bounds: array[int]) -> bool:
    """Return True if each text begins with { and ends with }. Then no JSON value spans two texts."""
    for start, following in pairwise(bounds):
        if not content.startswith(b"{", start):
            return False
        # The text itself may end in a line break, too.
        if (
            not content.startswith(b"}", following - 2)
            and content[following - 3 : following - 1] not in _ENDS_BEFORE_BREAK
        ):
            return False
    return True


def _holds_entries(content: memoryview, decoder: Decoder, *, count: int, times: range | None) -> bool:
    """Return True if ``content`` is ``count`` log entries, with any white space or none between them."""
    if len(content) > MAX_ENTRY_BYTES:
        return False
    try:
        decoded = decoder.decode_lines(content)
    except DECODE_ERRORS:
        return False
    return len(decoded) == count and (times is None or not any(_look_strange(decoded, times)))


def _look_strange(decoded: Sequence[Any], times: range) -> list[bool]:
    """Say of each entry whether its timestamp is none of ``times``, or it may have no column."""
    first, end = times.start, times.stop
    return [
        not first <= moment < end
        if (moment := entry.timestamp) is not None
        else entry.logId is None and entry.cacheStatus is None
        for entry in decoded
    ]


def _find_invalid_one_by_one(values: Sequence[JsonBytes], decoder: Decoder, times: range | None) -> list[int]:
    invalid = _find_undecodable(values, decoder)
    if times is None:
        return invalid
    strange = list(invalid)
    failed = set(invalid)
    indexes = iter(index for index in range(len(values)) if index not in failed)
    while some := list(islice(indexes, _DECODED_AT_ONCE)):
        looks = _look_strange([decoder.decode(values[index]) for index in some], times)
        strange += compress(some, looks)
    return sorted(strange)


def _find_undecodable(values: Sequence[JsonBytes], decoder: Decoder) -> list[int]:
    invalid: list[int] = []
    remaining = iter(values)
    while length_hint(remaining):
        try:
            # `deque` runs the loop in C.
            deque(map(decoder.decode, islice(remaining, _DECODED_AT_ONCE)), maxlen=0)
        except DECODE_ERRORS:
            # The iterator has just passed the value that failed.
            invalid.append(len(values) - length_hint(remaining) - 1)
    if max(map(len, values), default=0) > MAX_ENTRY_BYTES:
        too_long = (index for index, value in enumerate(values) if len(value) > MAX_ENTRY_BYTES)
        invalid = sorted({*invalid, *too_long})
    return invalid


def _correct(values: Sequence[JsonBytes], invalid: Iterable[int], times: range | None) -> SplitFile:
    """Explain or correct the values that are not log entries."""
    errors: dict[int, str] = {}
    corrected: dict[int, bytes] = {}
    for index in invalid:
        value = bytes(values[index])
        text, error = corrected_entry(value) if len(value) <= MAX_ENTRY_BYTES else (None, "")
        if text is not None and times is not None:
            if not (decode_members(text).keys() & COLUMN_NAMES):
                error = _explain_no_column(text)
                text = None
            elif not error:
                error = _explain_time(text, times)
        elif text is None:
            error = _entry_error(value)
        if text is not None:
            corrected[index] = text
        if error:
            errors[index] = error
    return SplitFile(values, errors, corrected)


def is_utf8(body: bytes) -> bool:
    """Return True if ``body`` is UTF-8. Arrow checks it without making a string."""
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


def _is_object(value: JsonBytes) -> bool:
    try:
        _check_object(value)
    except DECODE_ERRORS:
        return False
    return True


def _entry_error(value: bytes) -> str:
    try:
        entry_decoder(()).decode(value)
    except RecursionError:
        return "nested too deeply"
    except msgspec.ValidationError as error:
        return _in_words(str(error))
    except DECODE_ERRORS as error:
        if _is_json(value):
            return "contains an unpaired surrogate, which is not a character"
        return str(error)
    if len(value) > MAX_ENTRY_BYTES:
        return f"an entry of {len(value)} bytes; the limit is {MAX_ENTRY_BYTES}"
    # The limit of nesting also counts Python's own calls: here there are fewer than where it failed.
    return "nested too deeply"


def _in_words(error: str) -> str:
    """Say what msgspec says of a value of a wrong type."""
    match = _WRONG_TYPE.fullmatch(error)
    if match is None:
        return error
    field, expected = match["field"], match["expected"].removesuffix(" | null")
    what = f"{field} is" if field else "the entry is"
    if match["got"]:
        return f"{what} {_TYPES[match['got']]}, not {_TYPES[expected]}"
    return f"{what} out of range: it must be {match['limit']}" if match["limit"] else error


def _explain_no_column(entry: bytes) -> str:
    """Return why an object without any column is no entry. Its keys say what it is."""
    keys = [json.dumps(key[:_MAX_KEY], ensure_ascii=False) for key in decode_members(entry)]
    if not keys:
        return "it has no field"
    more = f" and {len(keys) - _MAX_KEYS} more" if len(keys) > _MAX_KEYS else ""
    return f"it has no column of the log; its keys are {', '.join(keys[:_MAX_KEYS])}{more}"


def _explain_time(entry: bytes, times: range) -> str:
    """Return what to say of a timestamp that is far from the day, or an empty text."""
    moment = entry_decoder(()).decode(entry).timestamp
    if moment is None or moment in times:
        return ""
    hint = ". It seems to be in seconds; it must be in milliseconds" if 1000 * moment in times else ""
    return (
        f"timestamp {moment} is more than two days from the day of its prefix: the entry stays, and savings "
        f"do not measure it{hint}"
    )


def _is_json(text: bytes) -> bool:
    """Return True if the JSON grammar accepts it, with unpaired surrogates and at any depth."""
    try:
        _parse_leniently(text)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _array_elements(text: bytes) -> list[bytes] | None:
    """Return the elements of an array that msgspec refuses but the JSON grammar accepts, or None."""
    if not text.lstrip(_WHITESPACE).startswith(b"["):
        return None
    try:
        return [json.dumps(element).encode() for element in _parse_leniently(text)]
    except (ValueError, RecursionError):
        return None


def _parse_leniently(text: bytes) -> Any:
    return json.loads(text.decode(), parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _json_error(text: bytes) -> str | None:
    """Return why msgspec does not accept the text, or None. It is stricter than the JSON grammar."""
    try:
        _decode_any(text)
    except msgspec.DecodeError as error:
        return str(error).removeprefix("JSON is malformed: ")
    except RecursionError:
        return "nested too deeply"
    return None


def _explain_broken_value(body: bytes) -> str:
    """Explain the error in a file of one value that has several lines."""
    error = _json_error(body) or ""
    match = _ERROR_OFFSET.search(error)
    end = int(match[1]) if match else len(body.rstrip(_WHITESPACE))
    line = body[:end].count(b"\n") + 1
    error = _ERROR_OFFSET.sub(r" at byte \1 of the file", error)
    return f"line {line} is not JSON: {error}"


def _explain_not_utf8(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        line = body[: error.start].count(b"\n") + 1
        return f"line {line} is not JSON: not UTF-8 at byte {error.start} of the file"
    raise AssertionError("the caller found that it is not UTF-8")
