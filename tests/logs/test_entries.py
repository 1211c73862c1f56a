"""How a raw file is split, and why an entry is set aside. Contract: "Query log entry and ``proxy_logs``"."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logs.columns import COLUMNS, Column, SqlType
from logs.compaction import entries
from logs.compaction.entries import BadFile, find_refused, find_wrong, split
from tenantadmin.objectstore.batch import starts_of

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


def texts_of(body: bytes) -> list[bytes]:
    """The entries of a file in which all are good."""
    values = split(body)
    assert not values.wrong
    return list(map(bytes, values.texts))


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b"{}", [b"{}"]),
        (b' {"timestamp": 1}\n', [b' {"timestamp": 1}']),
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
        (b'["\\ud83d", NaN]', "line 1 is not JSON: unexpected end of escaped utf-16 surrogate pair (byte 8)"),
        (b'\xef\xbb\xbf{"a": 1}', "line 1 is not JSON: invalid character (byte 0)"),
        (b'{\n "a": 1,\n "b": oops\n}\n', "line 3 is not JSON: invalid character at byte 17 of the file"),
        (
            b'\n[\n{"a": 1},\n{"b": 2},\n]\n',
            "line 5 is not JSON: trailing comma in array at byte 23 of the file",
        ),
        (b'[\n{"a": 1}\n{"b": 2}\n]', "line 3 is not JSON: expected ',' or ']' at byte 11 of the file"),
        (b'{\n "a": 1,\n', "line 2 is not JSON: Input data was truncated"),
        (b'{"a": 1,\n{"b": 2}\n', "line 1 is not JSON: Input data was truncated"),
        (b'{"b": 2}\n{"a": 1,\n', "line 2 is not JSON: Input data was truncated"),
        (b'5\n{"a": 1,\n', "line 2 is not JSON: Input data was truncated"),
    ],
)
def test_a_file_that_is_not_json_is_set_aside_whole(body: bytes, reason: str) -> None:
    with pytest.raises(BadFile) as caught:
        split(body)
    assert str(caught.value) == reason


def test_half_a_pair_in_an_object_of_several_lines_sets_that_aside_alone() -> None:
    values = split(b'{\n "statement": "\\ud83d"\n}\n')
    assert len(values.texts) == 1
    assert values.wrong == {0: "half of a surrogate pair stands in it alone, which is no character"}


def test_a_wrong_entry_is_set_aside_alone() -> None:
    body = b'[{"timestamp": 1}, 7, null, "x", [], {"statusCode": "200"}, {"timestamp": 2}]'

    values = split(body)

    assert len(values.texts) == 7
    assert values.wrong == {
        1: "Expected `object`, got `int`",
        2: "Expected `object`, got `null`",
        3: "Expected `object`, got `str`",
        4: "Expected `object`, got `array`",
        5: "Expected `int | null`, got `str` - at `$.statusCode`",
    }


LONE = b'{"userName": "a\\ud83d"}'
NO_PAIR = "half of a surrogate pair stands in it alone, which is no character"


@pytest.mark.parametrize(
    ("body", "place", "reason"),
    [
        (LONE, 0, NO_PAIR),
        (b"{}\n%b\n{}" % LONE, 1, NO_PAIR),
        (b" [{},\r\n %b , {}]\n" % LONE, 1, NO_PAIR),
        (b'{}\n{"a": %b%b}\n{}' % (b"[" * 20_000, b"]" * 20_000), 1, "nested too deeply"),
    ],
    ids=["alone", "line", "array", "deep"],
)
def test_json_that_cannot_be_decoded_is_set_aside_alone(body: bytes, place: int, reason: str) -> None:
    values = split(body)
    assert values.wrong == {place: reason}
    assert list(map(bytes, values.texts[:place])) == [b"{}"] * place


def test_what_is_refused_at_the_very_limit_of_nesting_nests_too_deeply() -> None:
    # Where that is depends on how deep the caller stands, and on how often the code has run.
    bodies = [b'{"x": %b%b}' % (b"[" * depth, b"]" * depth) for depth in range(850, 1100)]
    reasons = {reason for body in bodies * 2 for reason in split(body).wrong.values()}
    assert reasons == {"nested too deeply"}


@pytest.mark.parametrize("count", [1, 499, 500, 501, 1500])
def test_all_that_are_wrong_are_found_where_they_stand(count: int) -> None:
    places = {0, count // 2, count - 1, min(count - 1, 499), min(count - 1, 500)}
    texts = [b"7" if place in places else b"{}" for place in range(count)]
    assert find_wrong(texts) == dict.fromkeys(sorted(places), "Expected `object`, got `int`")
    assert find_wrong([b"7"] * count) == dict.fromkeys(range(count), "Expected `object`, got `int`")


#: Texts of no value, of one, of two, and parts of one that two of them make.
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


@settings(max_examples=500, deadline=None)
@given(
    texts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=5),
    block=st.sampled_from([1, 10, 1_000]),
)
def test_texts_looked_at_together_are_refused_as_each_alone(texts: list[str], block: int) -> None:
    bodies = [text.encode() for text in texts]
    alone = [place for place, body in enumerate(bodies) if find_wrong([body])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entries, "_BLOCK_BYTES", block)
        assert find_refused(b"\n".join(bodies), starts_of(map(len, bodies))) == alone


@pytest.mark.parametrize("first", [{}, {"statement": [1]}, None])
def test_the_order_of_fields_makes_no_difference(first: dict[str, Any] | None) -> None:
    names = [column.name for column in reversed(TYPED)]
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
    alone = {place: reasons[0] for place, text in enumerate(texts) if (reasons := find_wrong([text]))}
    assert len(alone) == (400 if first is None else 300)
    assert find_wrong(texts) == alone
    assert find_wrong(texts[1:]) == {place - 1: reason for place, reason in alone.items() if place}


def test_blank_lines_are_no_entries_and_move_none() -> None:
    values = split(b'\n{}\n \n{"statusCode": "1"}\n\n{}\n')
    assert list(map(bytes, values.texts)) == [b"{}", b'{"statusCode": "1"}', b"{}"]
    assert list(values.wrong) == [1]


@pytest.mark.parametrize("column", TYPED, ids=[column.name for column in TYPED])
def test_each_column_takes_its_type_and_null(column: Column) -> None:
    name, kind = column.name, column.type
    for value in (*RIGHT[kind], None):
        body = json.dumps({name: value}).encode()
        assert texts_of(body) == [body]
    for value in WRONG[kind]:
        reason = split(json.dumps({name: value}).encode()).wrong[0]
        assert reason.endswith(f"$.{name}`") or "Expected `int`" in reason


def test_a_large_file_is_checked_for_utf_8_as_a_small_one() -> None:
    for size in (10, 1 << 17):
        good = '{"userName": "ü"}\n'.encode() * (size // 18 + 1)
        assert len(texts_of(good)) == size // 18 + 1
        bad = good + b'{"other": "\xff"}'
        line, byte = good.count(b"\n") + 1, bad.index(b"\xff")
        reason = f"line {line} is not JSON: not UTF-8 at byte {byte} of the file"
        with pytest.raises(BadFile) as caught:
            split(bad)
        assert str(caught.value) == reason


def test_an_entry_over_16_mib_is_set_aside() -> None:
    large = b'{"userName": "' + b"x" * (16 << 20) + b'"}'
    for body, position in ((large, 0), (b"{}\n" + large, 1), (b"[{}," + large + b"]", 1)):
        values = split(body)
        assert values.wrong == {position: "an entry of 16777232 bytes; at most 16777216 are taken"}
