"""How a raw file is split into entries, and why an entry is quarantined.

Contract: "Query log entry and ``proxy_logs``".
"""

from __future__ import annotations

import gzip
import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logs.columns import COLUMNS, Column, SqlType
from logs.compaction import entries
from logs.compaction.entries import BadFile, Lines, check_values, find_invalid, split
from logs.layout import DAY_MS, near
from tenantadmin.lib.objectstore.storage import starts_of

ENDED = "Compressed file ended before the end-of-stream marker was reached"
INVALID: dict[SqlType, list[Any]] = {
    SqlType.VARCHAR: [1, True, [], {}],
    SqlType.BIGINT: ["1", True, 1.5, 2**63, -(2**63) - 1],
    SqlType.INTEGER: ["1", True, 1.5, 2**31, -(2**31) - 1],
    SqlType.BOOLEAN: ["true", 0, 1],
}
VALID: dict[SqlType, list[Any]] = {
    SqlType.VARCHAR: ["", "a"],
    SqlType.BIGINT: [0, 2**63 - 1, -(2**63)],
    SqlType.INTEGER: [0, 2**31 - 1, -(2**31)],
    SqlType.BOOLEAN: [True, False],
}

TYPED_COLUMNS = [column for column in COLUMNS if not column.json_text]


def entries_of(body: bytes) -> list[bytes]:
    """Return the entries of a file. All must be valid."""
    parts = split(body)
    assert not parts.errors
    return list(map(bytes, parts.values))


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b"{}", [b"{}"]),
        (b' {"timestamp": 1}\n', [b' {"timestamp": 1}']),
        (b'{\r\n "userName":\n"a"\n}', None),
        (b'{"timestamp":1}\n\n{"timestamp":2}\r\n', [b'{"timestamp":1}', b'{"timestamp":2}\r']),
        (b'[{"timestamp":1},\n {"timestamp":2}]', [b'{"timestamp":1}', b'{"timestamp":2}']),
        (b"[]", []),
        (b' [{"timestamp":1}]', [b'{"timestamp":1}']),
        (b'{"statement": ["anything", {}], "userName": null}', None),
        (b'{"tables": ["a"], "parameterValues": "[1]"}', None),
        (b'{"tables": 5, "parameterValues": {"a": [null]}}', None),
    ],
)
def test_one_object_lines_and_arrays_are_accepted(body: bytes, lines: list[bytes] | None) -> None:
    assert entries_of(body) == ([body] if lines is None else lines)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the file is empty"),
        (b" \n\r\n", "the file is empty"),
        (b"\x0b", "line 1 is not JSON: invalid character (byte 0)"),
        (b"{}\n\x0c\n{}", "line 2 is not JSON: invalid character (byte 0)"),
        (b"\xff{}", "line 1 is not JSON: not UTF-8 at byte 0 of the file"),
        (b'{"other": "\xff"}\n{}\n', "line 1 is not JSON: not UTF-8 at byte 11 of the file"),
        (b'{"userName": "a"', "line 1 is not JSON: Input data was truncated"),
        (b'{}\n{"a": }\n', "line 2 is not JSON: invalid character (byte 6)"),
        (b'{}\n\n{"userName": 5, "a": [}\n', "line 3 is not JSON: invalid character (byte 22)"),
        (b'{}\n{"other": "\xff"}', "line 2 is not JSON: not UTF-8 at byte 14 of the file"),
        (b'{"a": NaN}', "line 1 is not JSON: invalid character (byte 6)"),
        (b'["\\ud83d", NaN]', "line 1 is not JSON: unexpected end of escaped utf-16 surrogate pair (byte 8)"),
        (b'{"a": 1\xef\xbb\xbf}', "line 1 is not JSON: expected ',' or '}' (byte 7)"),
        (b"\x1f\x8b{}", f"gzip cannot unpack it: {ENDED}"),
        (gzip.compress(b"{}", mtime=0)[:-4], f"gzip cannot unpack it: {ENDED}"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
        (b'{\n "a": 1,\n "b": oops\n}\n', "line 3 is not JSON: invalid character at byte 17 of the file"),
        (
            b'\n[\n{"a": 1},\n{"b": 2},\n]\n',
            "line 5 is not JSON: trailing comma in array at byte 23 of the file",
        ),
        (b'[\n{"a": 1}\n{"b": 2}\n]', "line 3 is not JSON: expected ',' or ']' at byte 11 of the file"),
        (b' [\n{"a": 1}\n{"b": 2}\n]', "line 3 is not JSON: expected ',' or ']' at byte 12 of the file"),
        (b'{\n "a": 1,\n', "line 2 is not JSON: Input data was truncated"),
        (b'{"a": 1,\n{"b": 2}\n', "line 1 is not JSON: Input data was truncated"),
        (b'{"b": 2}\n{"a": 1,\n', "line 2 is not JSON: Input data was truncated"),
        (b'5\n{"a": 1,\n', "line 2 is not JSON: Input data was truncated"),
    ],
)
def test_a_file_that_is_not_json_is_quarantined_whole(body: bytes, reason: str) -> None:
    with pytest.raises(BadFile) as caught:
        split(body)
    assert str(caught.value) == reason


def test_a_byte_order_mark_is_read_over() -> None:
    mark = b"\xef\xbb\xbf"
    assert entries_of(mark + b'{"userName": "a"}') == [b'{"userName": "a"}']
    # Files that were joined have one in the middle.
    assert entries_of(mark + b'{"userName": "a"}\n' + mark + b"{}\n") == [b'{"userName": "a"}', b"{}"]
    assert entries_of(mark + b'[{"userName": "\xef\xbb\xbf"}]') == [b'{"userName": "\xef\xbb\xbf"}']


def test_a_file_that_holds_gzip_is_unpacked_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"userName": "a"}\n{"userName": "b"}\n'
    assert entries_of(gzip.compress(body[:18]) + gzip.compress(body[18:])) == body.splitlines()
    assert entries_of(gzip.compress(b"\xef\xbb\xbf" + body)) == body.splitlines()
    monkeypatch.setattr(entries, "MAX_UNPACKED_BYTES", 1 << 20)
    assert len(entries_of(gzip.compress(b"{}\n" * 300_000))) == 300_000
    with pytest.raises(BadFile, match="it has more than 1 MiB when it is unpacked"):
        split(gzip.compress(b"{}\n" * 400_000))


@pytest.mark.parametrize(
    ("entry", "fields"),
    [
        (b'{"responseTimeMs": 12.0, "responseSize": 1.5e1}', {"responseTimeMs": 12, "responseSize": 15}),
        (b'{"timestamp": 9007199254740993.0e-3, "x": 1}', None),
        (b'{"responseSize": 9007199254740993.0}', {"responseSize": 9_007_199_254_740_993}),
        (b'{"responseSize": -0.0}', {"responseSize": 0}),
        (b'{"responseSize": 12.5}', None),
        (b'{"responseSize": 1e400}', None),
        (b'{"responseSize": 1e9999999999}', None),
        (b'{"responseSize": "12"}', None),
        (b'{"statusCode": 2147483648.0}', None),
        (b'{"userName": 5, "userName": "a"}', {"userName": "a"}),
        (b'{"userName": "a", "userName": 5}', None),
        (
            b'{"tables": [1.0,  1e3], "statusCode": 2e2}',
            {"tables": [1.0, 1000.0], "statusCode": 200},
        ),
        (b'{"isDDL": 1.0}', None),
    ],
)
def test_an_entry_that_is_right_after_a_correction(entry: bytes, fields: dict[str, Any] | None) -> None:
    parts = split(b"{}\n" + entry)
    if fields is None:
        assert list(parts.errors) == [1]
        assert not parts.corrected
    else:
        assert not parts.errors
        assert json.loads(parts.corrected[1]) == fields


@pytest.mark.parametrize(
    "moment", ["-1", "253402300800000", "1767225600000000000", "9" * 30, "-62135596800001", "1e30"]
)
def test_a_timestamp_that_no_date_holds_is_null_and_listed(moment: str) -> None:
    parts = split(f'{{"timestamp": {moment}, "userName": "a"}}'.encode())
    if moment == "1e30":
        # No integer: the entry has a wrong type.
        assert (list(parts.errors), parts.corrected) == ([0], {})
        return
    assert parts.errors == {0: f"timestamp {moment} is outside of the years 1970 to 9999 and read as null"}
    assert json.loads(parts.corrected[0]) == {"timestamp": None, "userName": "a"}


def test_the_first_and_the_last_timestamp() -> None:
    for moment in (0, 253_402_300_799_999):
        parts = split(f'{{"timestamp": {moment}}}'.encode())
        assert (parts.errors, parts.corrected) == ({}, {})


def test_an_object_of_several_lines_with_an_unpaired_surrogate_is_one_quarantined_entry() -> None:
    parts = split(b'{\n "statement": "\\ud83d"\n}\n')
    assert len(parts.values) == 1
    assert parts.errors == {0: "contains an unpaired surrogate, which is not a character"}


def test_only_the_invalid_entries_of_a_file_are_quarantined() -> None:
    body = b'[{"timestamp": 1}, 7, null, "x", [], {"statusCode": "200"}, {"timestamp": 2}]'

    parts = split(body)

    assert len(parts.values) == 7
    assert parts.errors == {
        1: "the entry is an integer, not an object",
        2: "the entry is null, not an object",
        3: "the entry is text, not an object",
        4: "the entry is a list, not an object",
        5: "statusCode is text, not an integer",
    }


DAY_TIMES = near(date(2026, 1, 1))
NOON = DAY_TIMES.start + 2 * DAY_MS + DAY_MS // 2
FAR = "is more than two days from the day of its prefix: the entry stays, and savings do not measure it"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({}, "it has no field"),
        # Fluent Bit, and CloudTrail
        (
            {"log": '{"timestamp": 1}', "stream": "stdout"},
            'it has no column of the log; its keys are "log", "stream"',
        ),
        ({"Records": [{"timestamp": 1}]}, 'it has no column of the log; its keys are "Records"'),
        ({"a\0": 1}, 'it has no column of the log; its keys are "a\\u0000"'),
        (
            {f"{number}-{'k' * 60}": 1 for number in range(12)},
            "it has no column of the log; its keys are "
            + ", ".join(f'"{number}-{"k" * 38}"' for number in range(10))
            + " and 2 more",
        ),
    ],
)
def test_an_object_without_any_column_is_set_aside_with_its_keys(entry: dict[str, Any], reason: str) -> None:
    """A log of them was rows of nulls and "a quiet day"."""
    good = {"timestamp": NOON}
    for body in (
        json.dumps(entry),
        json.dumps([good, entry, good]),
        "\n".join(map(json.dumps, [good, entry])),
    ):
        parts = split(body.encode(), times=DAY_TIMES)
        index = 0 if body == json.dumps(entry) else 1
        assert (parts.errors, parts.corrected) == ({index: reason}, {})


@pytest.mark.parametrize("entry", [{"userName": "a"}, {"cacheStatus": None}, {"timestamp": None, "x": 1}])
def test_an_object_with_a_column_is_an_entry(entry: dict[str, Any]) -> None:
    parts = split(json.dumps(entry).encode(), times=DAY_TIMES)
    assert not parts.errors
    assert json.loads(parts.corrected.get(0, bytes(parts.values[0]))) == entry


@pytest.mark.parametrize(
    ("moment", "listed"),
    [
        (DAY_TIMES.start - 1, FAR),
        (DAY_TIMES.start, ""),
        (NOON, ""),
        (DAY_TIMES.stop - 1, ""),
        (DAY_TIMES.stop, FAR),
        (NOON // 1000, f"{FAR}. It seems to be in seconds; it must be in milliseconds"),
        (0, FAR),
    ],
)
def test_an_entry_far_from_its_day_stays_and_is_listed(moment: int, listed: str) -> None:
    entry = {"timestamp": moment, "userName": "a"}
    for entries_there in ([entry], [{"logId": "x"}, entry]):
        body = "\n".join(map(json.dumps, entries_there)).encode()
        parts = split(body, times=DAY_TIMES)
        index = len(entries_there) - 1
        assert parts.errors == ({index: f"timestamp {moment} {listed}"} if listed else {})
        assert json.loads(parts.corrected.get(index, bytes(parts.values[index]))) == entry


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(
            [
                b"{}",
                b'{"x":1}',
                b'{"timestamp":%d}' % NOON,
                b'{"timestamp":1}',
                b'{"logId":null}',
                b"7",
                b'{"logId":"a"}',
            ]
        ),
        min_size=1,
        max_size=30,
    )
)
def test_one_by_one_and_together_find_the_same(texts: list[bytes]) -> None:
    content = b"\n".join(texts)
    found = find_invalid(content, starts_of(map(len, texts)), times=DAY_TIMES)
    assert found == [
        index
        for index, text in enumerate(texts)
        if text not in {b'{"timestamp":%d}' % NOON, b'{"logId":"a"}'}
    ]
    errors = check_values(texts, times=DAY_TIMES).errors
    fine = {b'{"timestamp":%d}' % NOON, b'{"logId":"a"}', b'{"logId":null}'}
    assert [*errors] == [index for index, text in enumerate(texts) if text not in fine]


LONE_SURROGATE = b'{"userName": "a\\ud83d"}'
UNPAIRED = "contains an unpaired surrogate, which is not a character"


@pytest.mark.parametrize(
    ("body", "index", "reason"),
    [
        (LONE_SURROGATE, 0, UNPAIRED),
        (b"{}\n%b\n{}" % LONE_SURROGATE, 1, UNPAIRED),
        (b" [{},\r\n %b , {}]\n" % LONE_SURROGATE, 1, UNPAIRED),
        (b'{}\n{"a": %b%b}\n{}' % (b"[" * 500_000, b"]" * 500_000), 1, "nested too deeply"),
    ],
    ids=["alone", "line", "array", "deep"],
)
def test_json_that_cannot_be_decoded_is_quarantined_without_the_rest_of_its_file(
    body: bytes, index: int, reason: str
) -> None:
    parts = split(body)
    assert parts.errors == {index: reason}
    assert list(map(bytes, parts.values[:index])) == [b"{}"] * index


def test_entries_near_the_limit_of_nesting_give_the_right_reason() -> None:
    # The limit depends on the depth of the call stack, and on how often the code has run. From Python 3.12 on
    # it is ten times as high; from 3.14 on it depends on the bytes of the stack.
    depths = [*range(850, 1100), *range(9_700, 10_100, 20), *range(200_000, 500_001, 20_000)]
    bodies = [b'{"x": %b%b}' % (b"[" * depth, b"]" * depth) for depth in depths]
    reasons = {reason for body in bodies * 2 for reason in split(body).errors.values()}
    assert reasons == {"nested too deeply"}


@pytest.mark.parametrize("count", [1, 499, 500, 501, 1500])
def test_every_invalid_value_is_found_at_its_index(count: int) -> None:
    indexes = {0, count // 2, count - 1, min(count - 1, 499), min(count - 1, 500)}
    texts = [b"7" if index in indexes else b"{}" for index in range(count)]
    assert check_values(texts).errors == dict.fromkeys(
        sorted(indexes), "the entry is an integer, not an object"
    )
    assert check_values([b"7"] * count).errors == dict.fromkeys(
        range(count), "the entry is an integer, not an object"
    )


#: Texts that hold no value, one value, two values, or a part of one.
PARTS = [
    "",
    "\n",
    "{}",
    "{}\n",
    "{\n}",
    "{}{}",
    "{}\n{}",
    '{"a":1',
    '"b":2}',
    '{"a":{}',
    "[{}",
    "{}]",
    "{",
    "}",
    '{"a":"}',
    '"}',
]


@pytest.mark.parametrize(
    "texts",
    [
        ['{"a":[{},', "{}]}{}"],
        ['{"a":[{},', "{}]}{} "],
        ['{"a":[{} ,', "{}]}{} "],
        ['{"a":[{},\n', "{}]}{}\n"],
        ['{"a":[1,', '2]}{"b":3}'],
        ['{}{"a":"}', '{"}'],
        [' {"a":[{}', ",{}]}{}"],
        ['{"a":[{},', "{ }]}{}\n"],
        ["{}", "{}{}", '{"a":[{},', "{}]}"],
        ["[{}", "{}]"],
        ["{}", "", "{}{}"],
        ["{}\n{}", ""],
    ],
)
def test_texts_with_as_many_values_as_texts_are_invalid_if_a_value_spans_two(texts: list[str]) -> None:
    bodies = [text.encode() for text in texts]
    found = find_invalid(b"\n".join(bodies), starts_of(map(len, bodies)))
    assert found == [index for index, text in enumerate(texts) if text != "{}"]


def test_texts_of_later_blocks_must_be_one_value_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "_BLOCK_BYTES", 1)
    for count in range(2, 6):
        bodies = [b"{}", b"{}" * count, b"{}" * count, b"{}"]
        assert find_invalid(b"\n".join(bodies), starts_of(map(len, bodies))) == [1, 2]


def test_a_file_of_entry_lines_is_not_copied() -> None:
    for body in (b"{}", b"{}\n", b'{}\n{"timestamp": 1}', b"{}\r\n{}\n"):
        assert isinstance(split(body).values, Lines)
    lines = split(b"{}\n{}").values
    assert isinstance(lines, Lines)
    assert list(lines.starts) == [0, 3, 6]
    for body in (b"[{}]", b"{}\n\n{}", b"{\n}"):
        assert not isinstance(split(body).values, Lines)


def test_lines_are_a_sequence() -> None:
    found = split(b'{}\n{"a":1}\n{"b":2}\n').values
    assert len(found) == 3
    assert list(map(bytes, found)) == [b"{}", b'{"a":1}', b'{"b":2}']
    assert list(map(bytes, found[1:])) == [b'{"a":1}', b'{"b":2}']
    assert bytes(found[-1]) == b'{"b":2}'
    with pytest.raises(IndexError):
        found[3]


@settings(max_examples=500, deadline=None)
@given(
    texts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=5),
    block=st.sampled_from([1, 10, 1_000]),
)
def test_texts_checked_together_are_invalid_if_they_are_invalid_alone(texts: list[str], block: int) -> None:
    bodies = [text.encode() for text in texts]
    alone = [index for index, body in enumerate(bodies) if check_values([body]).errors]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entries, "_BLOCK_BYTES", block)
        assert find_invalid(b"\n".join(bodies), starts_of(map(len, bodies))) == alone


@pytest.mark.parametrize("first", [{}, {"statement": [1]}, None])
def test_the_order_of_fields_does_not_change_the_errors(first: dict[str, Any] | None) -> None:
    names = [column.name for column in reversed(TYPED_COLUMNS)]
    reversed_entry = dict.fromkeys(names)
    some = [
        first,
        reversed_entry,
        dict.fromkeys(sorted(names)),
        {"other": 1, **reversed_entry, "userName": 7},
        {**dict.fromkeys(sorted(names)), "statusCode": "200"},
        {"statusCode": "200", "userName": 7},
    ]
    texts = [json.dumps(entry).encode() for entry in some] * 100
    alone = {
        index: reasons[0] for index, text in enumerate(texts) if (reasons := check_values([text]).errors)
    }
    assert len(alone) == (400 if first is None else 300)
    assert check_values(texts).errors == alone
    assert check_values(texts[1:]).errors == {index - 1: reason for index, reason in alone.items() if index}


def test_blank_lines_are_skipped_and_not_counted() -> None:
    parts = split(b'\n{}\n \n{"statusCode": "1"}\n\n{}\n')
    assert list(map(bytes, parts.values)) == [b"{}", b'{"statusCode": "1"}', b"{}"]
    assert list(parts.errors) == [1]


@pytest.mark.parametrize("column", TYPED_COLUMNS, ids=[column.name for column in TYPED_COLUMNS])
def test_each_column_accepts_its_type_and_null(column: Column) -> None:
    name, kind = column.name, column.type
    # Other timestamps are corrected.
    valid = [0, 253_402_300_799_999] if name == "timestamp" else VALID[kind]
    for value in (*valid, None):
        body = json.dumps({name: value}).encode()
        assert entries_of(body) == [body]
    for value in INVALID[kind][:3] if name == "timestamp" else INVALID[kind]:
        reason = split(json.dumps({name: value}).encode()).errors[0]
        assert reason.startswith(f"{name} is ") or "Integer value out of range" in reason


def test_large_and_small_files_are_checked_for_utf_8() -> None:
    for size in (10, 1 << 17):
        good = '{"userName": "ü"}\n'.encode() * (size // 18 + 1)
        assert len(entries_of(good)) == size // 18 + 1
        bad = good + b'{"other": "\xff"}'
        line, byte = good.count(b"\n") + 1, bad.index(b"\xff")
        reason = f"line {line} is not JSON: not UTF-8 at byte {byte} of the file"
        with pytest.raises(BadFile) as caught:
            split(bad)
        assert str(caught.value) == reason


def test_a_value_that_is_not_json_is_explained() -> None:
    texts = [b'{"timestamp": 1.}', b"{}", b'{"userName": "\\q"}']
    assert check_values(texts).errors == {
        0: "JSON is malformed: invalid number (byte 16)",
        2: "JSON is malformed: invalid escape character in string (byte 16)",
    }


def test_only_entries_over_the_limit_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MAX_ENTRY_BYTES", 18)
    texts = [b'{"userName": "12"}', b'{"userName": "123"}', b"{}", b"7"]
    assert check_values(texts).errors == {
        1: "an entry of 19 bytes; the limit is 18",
        3: "the entry is an integer, not an object",
    }


def test_an_entry_over_16_mib_is_quarantined() -> None:
    large = b'{"userName": "' + b"x" * (16 << 20) + b'"}'
    for body, position in ((large, 0), (b"{}\n" + large, 1), (b"[{}," + large + b"]", 1)):
        parts = split(body)
        assert parts.errors == {position: "an entry of 16777232 bytes; the limit is 16777216"}
