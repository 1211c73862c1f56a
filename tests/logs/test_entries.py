"""How a raw file is split, and why an entry is set aside. Contract: "Query log entry and ``proxy_logs``"."""

from __future__ import annotations

import json
from typing import Any

import pytest

from logs.columns import COLUMNS, Column, SqlType
from logs.compaction.entries import Accepted, Rejected, canonical, read_entries


def accepted(*lines: bytes) -> tuple[list[Accepted], list[Rejected]]:
    return [Accepted(position, line) for position, line in enumerate(lines)], []


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b"{}", [b"{}"]),
        (b' {"timestamp": 1}\n', [b'{"timestamp": 1}']),
        (b'{\r\n "userName":\n"a"\n}', [b'{   "userName": "a" }']),
        (b'{"timestamp":1}\n\n{"timestamp":2}\r\n', [b'{"timestamp":1}', b'{"timestamp":2}']),
        (b'[{"timestamp":1},\n {"timestamp":2}]', [b'{"timestamp":1}', b'{"timestamp":2}']),
        (b"[]", []),
        (b'{"statement": ["anything", {}], "userName": null}', None),
        (b'{"tables": ["a"], "parameterValues": "[1]"}', None),
        (b'{"tables": 5, "parameterValues": {"a": [null]}}', None),
    ],
)
def test_one_object_lines_and_arrays_are_taken(body: bytes, lines: list[bytes] | None) -> None:
    assert read_entries(body) == accepted(*([body] if lines is None else lines))


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
    assert read_entries(body) == ([], [Rejected(None, reason)])


def test_a_wrong_entry_is_set_aside_alone() -> None:
    body = b'[{"timestamp": 1}, 7, null, "x", [], {"statusCode": "200"}, {"timestamp": 2}]'

    assert read_entries(body) == (
        [Accepted(0, b'{"timestamp": 1}'), Accepted(6, b'{"timestamp": 2}')],
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
        log_id = value if name == "logId" else None
        assert read_entries(body) == ([Accepted(0, body, log_id)], [])
    for value in WRONG[kind]:
        good, (rejected,) = read_entries(json.dumps({name: value}).encode())
        assert good == []
        assert rejected.position == 0
        assert rejected.reason.endswith(f"$.{name}`") or "Expected `int`" in rejected.reason


def test_each_entry_comes_with_its_log_id() -> None:
    body = b'[{"logId": "\\u00fc"}, {}, {"logId": null}]'

    assert read_entries(body) == (
        [Accepted(0, b'{"logId": "\\u00fc"}', "ü"), Accepted(1, b"{}"), Accepted(2, b'{"logId": null}')],
        [],
    )


def test_an_entry_over_16_mib_is_set_aside() -> None:
    large = b'{"userName": "' + b"x" * (16 << 20) + b'"}'
    for body, position in ((large, 0), (b"{}\n" + large, 1)):
        _, (rejected,) = read_entries(body)
        assert rejected == Rejected(position, "an entry of 16777232 bytes; at most 16777216 are taken")


def test_the_canonical_form_has_known_columns_once_the_last_value_counting() -> None:
    line = b'{"x": 1, "userName": "a", "tables": [1, 2], "userName": "\\u00fc", "timestamp": null}'
    assert canonical(line) == '{"userName":"ü","tables":[1, 2]}'.encode()
