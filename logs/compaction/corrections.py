"""Correct values that are nearly log entries.

Of a repeated field the last value counts, 12.0 is the integer 12, and a timestamp that no date holds is null.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Final

from logs.columns import COLUMNS, MAX_TIMESTAMP, SqlType
from logs.compaction.decoders import DECODE_ERRORS, decode_members, entry_decoder

_INTEGERS: Final = {column.name for column in COLUMNS if column.type in {SqlType.BIGINT, SqlType.INTEGER}}
_INTEGER: Final = re.compile(rb"-?[0-9]+")
#: A number that may have a fraction or an exponent.
_FLOAT: Final = re.compile(rb"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?")


def corrected_entry(value: bytes) -> tuple[bytes | None, str]:
    """Return the entry that a value is after its corrections, and what to say of it; else None."""
    try:
        fields = {name: bytes(raw) for name, raw in decode_members(value).items()}
    except DECODE_ERRORS:
        return None, ""
    for name in _INTEGERS & fields.keys():
        fields[name] = _as_integer(fields[name])
    error = ""
    moment = fields.get("timestamp", b"null")
    if _INTEGER.fullmatch(moment) and not (len(moment) < 20 and 0 <= int(moment) <= MAX_TIMESTAMP):
        fields["timestamp"] = b"null"
        error = f"timestamp {moment.decode()[:40]} is outside of the years 1970 to 9999 and read as null"
    text = b"{%b}" % b",".join(b"%b:%b" % (json.dumps(name).encode(), raw) for name, raw in fields.items())
    try:
        entry_decoder(()).decode(text)
    except DECODE_ERRORS:
        return None, ""
    return text, error


def _as_integer(number: bytes) -> bytes:
    """Return a number without a fraction as an integer: 12 for ``12.0``. Return other values as they are."""
    if _FLOAT.fullmatch(number) and not _INTEGER.fullmatch(number):
        value = Decimal(number.decode())
        if value.adjusted() < len(str(2**63)) and value == value.to_integral_value():
            return str(int(value)).encode()
    return number


def unrepeated(value: bytes) -> bytes:
    """Return an entry with each field once. Of a repeated one, the last value counts."""
    text, _ = corrected_entry(value)
    if text is None:
        raise AssertionError("the caller found that it is an entry")
    return text
