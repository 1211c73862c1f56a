"""How a raw file is split, and why an entry is set aside. Contract: "Query log entry and ``proxy_logs``"."""

from __future__ import annotations

import json
from typing import Any

import pytest

from logs.columns import COLUMNS, Column, SqlType
from logs.compaction.entries import Entries, Rejected, read_entries


def texts_of(body: bytes) -> list[bytes]:
    """The entries of a file in which all are good."""
    entries, rejected = read_entries(body)
    assert rejected == []
    assert len(entries.timestamps) == len(entries.log_ids) == len(entries.texts)
    return entries.texts


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b"{}", [b"{}"]),
        (b' {"timestamp": 1}\n', None),
        (b'{\r\n "userName":\n"a"\n}', None),
        (b'{"timestamp":1}\n\n{"timestamp":2}\r\n', [b'{"timestamp":1}', b'{"timestamp":2}\r']),
        (b'[{"timestamp":1},\n {"timestamp":2}]', [b'{"timestamp":1}', b'{"timestamp":2}']),
        (b"[]", []),
        (b'{"statement": ["anything", {}], "userName": null}', None),
        (b'{"tables": ["a"], "parameterValues": "[1]"}', None),
        (b'{"tables": 5, "parameterValues": {"a": [null]}}', None),
    ],
)
def test_one_object_lines_and_arrays_are_taken(body: bytes, lines: list[bytes] | None) -> None:
    assert texts_of(body) == ([body] if lines is None else lines)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the file is empty"),
        (b" \n\r\n", "the file is empty"),
        (b'{"userName": "a"', "line 1 is not JSON: Input data was truncated"),
        (b'{}\n{"a": }\n', "line 2 is not JSON: invalid character (byte 6)"),
        (b'{}\n\n{"userName": 5, "a": [}\n', "line 3 is not JSON: invalid character (byte 22)"),
        (b'{}\n{"other": "\xff"}', "line 2 is not JSON: not UTF-8 at byte 14 of the file"),
        (b'{"a": NaN}', "line 1 is not JSON: invalid character (byte 6)"),
        (b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "line 1 is not JSON: nested too deeply"),
        (b'\xef\xbb\xbf{"a": 1}', "line 1 is not JSON: invalid character (byte 0)"),
    ],
)
def test_a_file_that_is_not_json_is_set_aside_whole(body: bytes, reason: str) -> None:
    assert read_entries(body) == (Entries([], [], []), [Rejected(None, reason)])


def test_a_wrong_entry_is_set_aside_alone() -> None:
    body = b'[{"timestamp": 1}, 7, null, "x", [], {"statusCode": "200"}, {"timestamp": 2}]'

    assert read_entries(body) == (
        Entries([b'{"timestamp": 1}', b'{"timestamp": 2}'], [1, 2], [None, None]),
        [
            Rejected(1, "Expected `object`, got `int`"),
            Rejected(2, "Expected `object`, got `null`"),
            Rejected(3, "Expected `object`, got `str`"),
            Rejected(4, "Expected `object`, got `array`"),
            Rejected(5, "Expected `int | null`, got `str` - at `$.statusCode`"),
        ],
    )


WRONG: dict[SqlType, list[Any]] = {
    SqlType.VARCHAR: [1, True, [], {}],
    SqlType.BIGINT: ["1", True, 1.5, 2**63, -(2**63) - 1],
    SqlType.INTEGER: ["1", True, 1.5, 2**31, -(2**31) - 1],
    SqlType.BOOLEAN: ["true", 0, 1],
}
RIGHT: dict[SqlType, list[Any]] = {
    SqlType.VARCHAR: ["", "a"],
    SqlType.BIGINT: [0, 2**63 - 1, -(2**63)],
    SqlType.INTEGER: [0, 2**31 - 1, -(2**31)],
    SqlType.BOOLEAN: [True, False],
}


TYPED = [column for column in COLUMNS if not column.json_text]


@pytest.mark.parametrize("column", TYPED, ids=[column.name for column in TYPED])
def test_each_column_takes_its_type_and_null(column: Column) -> None:
    name, kind = column.name, column.type
    for value in (*RIGHT[kind], None):
        body = json.dumps({name: value}).encode()
        assert texts_of(body) == [body]
    for value in WRONG[kind]:
        good, (rejected,) = read_entries(json.dumps({name: value}).encode())
        assert good.texts == []
        assert rejected.position == 0
        assert rejected.reason.endswith(f"$.{name}`") or "Expected `int`" in rejected.reason


def test_each_entry_comes_with_its_time_and_log_id() -> None:
    entries, _ = read_entries(b'[{"logId": "\\u00fc", "timestamp": -1}, {}, {"logId": null, "timestamp": 0}]')

    assert entries.timestamps == [-1, None, 0]
    assert entries.log_ids == ["ü", None, None]


def test_a_large_file_is_checked_for_utf_8_as_a_small_one() -> None:
    for size in (10, 1 << 17):
        good = '{"userName": "ü"}\n'.encode() * (size // 18 + 1)
        assert len(texts_of(good)) == size // 18 + 1
        bad = good + b'{"other": "\xff"}'
        line, byte = good.count(b"\n") + 1, bad.index(b"\xff")
        reason = f"line {line} is not JSON: not UTF-8 at byte {byte} of the file"
        assert read_entries(bad) == (Entries([], [], []), [Rejected(None, reason)])


def test_an_entry_over_16_mib_is_set_aside() -> None:
    large = b'{"userName": "' + b"x" * (16 << 20) + b'"}'
    for body, position in ((large, 0), (b"{}\n" + large, 1)):
        _, (rejected,) = read_entries(body)
        assert rejected == Rejected(position, "an entry of 16777232 bytes; at most 16777216 are taken")
