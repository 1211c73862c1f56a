"""Rows made at once are those that entries looked at one by one give.

Contract: "Query log entry and ``proxy_logs``".
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logs.columns import COLUMNS
from logs.compaction import batches, entries
from logs.compaction.batches import Quarantined, read_rows
from logs.compaction.convert import Converter, Entries
from logs.compaction.entries import BadFile, find_wrong, split
from logs.layout import HOUR_MS, day_prefix, day_start_ms
from tenantadmin.objectstore import Entry, batch
from tenantadmin.objectstore.batch import in_batches
from tests.analytics import raw

if TYPE_CHECKING:
    from collections.abc import Mapping


DAY = raw.DAYS[1]


def read(
    files: Mapping[str, bytes], *, piece: int = 1 << 20, block: int = 1 << 20, at_once: int = 256
) -> tuple[list[dict[str, Any]], list[Quarantined]]:
    """The rows of some files, each under an hour of its own, and what is set aside, by their names.

    Args:
        piece: bytes that are converted at once.
        block: bytes that are looked at together.
        at_once: texts that the engine parses at once.
    """
    prefix = day_prefix(UUID(int=1), DAY)
    found = [
        (Entry(f"{prefix}{hour:02}/{name}", len(body), ""), body)
        for hour, (name, body) in enumerate(files.items())
    ]
    wrong: list[Quarantined] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "_PIECE_BYTES", piece)
        patch.setattr(batches, "_PARSED_AT_ONCE", at_once)
        patch.setattr(entries, "_BLOCK_BYTES", block)
        rows = [
            row
            for some in read_rows(in_batches(found), day=DAY, quarantined=wrong)
            for row in some.to_pylist()
        ]
    named = [replace(item, key=item.key[len(prefix) + 3 :]) for item in wrong]
    return rows, sorted(named, key=repr)


def read_one_by_one(files: Mapping[str, bytes]) -> tuple[list[dict[str, Any]], list[Quarantined]]:
    """The same, each entry by itself and by the engine's function for one value."""
    rows: list[dict[str, Any]] = []
    wrong: list[Quarantined] = []
    for hour, (key, body) in enumerate(files.items()):
        try:
            texts = split(body).texts
        except BadFile as error:
            wrong.append(Quarantined(key, None, str(error)))
            continue
        for position, text in enumerate(texts):
            if reasons := find_wrong([text]):
                wrong.append(Quarantined(key, position, reasons[0]))
            else:
                rows.append(row_of(bytes(text).decode(), hour=hour))
    return rows, sorted(wrong, key=repr)


STRUCTURE = json.dumps({column.name: column.type.value for column in COLUMNS})


def row_of(entry: str, *, hour: int) -> dict[str, Any]:
    found = duckdb.execute("SELECT from_json($1, $2)", [entry, STRUCTURE]).fetchall()[0][0]
    row = {column.name: found[column.name] for column in COLUMNS}
    for column in COLUMNS:
        if column.never_null and row[column.name] is None:
            row[column.name] = 0
    own = -1 if found["timestamp"] is None else (found["timestamp"] - day_start_ms(DAY)) // HOUR_MS
    return {**row, "_hour": own if 0 <= own < 24 else hour, "_prefix_hour": hour}


# --- Any files --------------------------------------------------------------------------------

#: Tokens of which much is nearly JSON.
_TOKENS = (
    *("{", "}", "[", "]", ",", ":", "\n", "\r\n", " ", "\t", "\0", "\ufeff", "{}", "[]", '"', "\\"),
    *('"timestamp"', '"userName"', '"tables"', '"parameterValues"', '"isDDL"', '"statusCode"', '"logId"'),
    *('"time\\u0073tamp"', '"statement"', '"\\ud800"', '"\\udc00"', '"\\ud83d\\ude00"', '"\\u0000"', '"\\/"'),
    *("0", "-0", "1.0", "1e3", "1E-2", "01", "1e999", "-", "NaN", "Infinity", "-Infinity", "null", "true"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "2147483648", "0x10"),
    *('"a"', '"\x01"', '"\x7f"', '"\u2028"', '"ü"', '"\\q"', "'a'", "/**/", "nul", "\x0b"),
)
_VALUES = (
    *(
        "null",
        "true",
        "0",
        "-0",
        "-1",
        "1.0",
        "1e3",
        "01",
        "1e999",
        "NaN",
        "-Infinity",
        "2147483648",
        "1e-999",
    ),
    *("9223372036854775807", "9223372036854775808", "123456789012345678901234567890", "0.1", "-", ""),
    *(
        '"a"',
        '""',
        '"1"',
        '"\\u0000"',
        '"\\ud800"',
        '"\\ud83d\\ude00"',
        '"ü\\/\\b"',
        '"[1, 2]"',
        '"\x01"',
        '"\n"',
    ),
    *(
        '["a"]',
        '["a", "b\\"\\\\"]',
        '["\\n"]',
        '["\\u0001", "\x7f\u2028"]',
        "[]",
        "[null]",
        "[1]",
        '[["a"]]',
        '["NaN", NaN]',
    ),
    *(
        '["ü", ""]',
        '[ "/" , "\\/" ]',
        "{}",
        '{"a": [1, {"b": null}]}',
        '{"timestamp": 1}',
        "[" * 2_000 + "]" * 2_000,
    ),
)
_NAMES = (
    *(column.name for column in COLUMNS),
    "statement",
    "",
    "tables",
    "tables",
    "parameterValues",
    "time\\u0073tamp",
)


def _objects() -> st.SearchStrategy[str]:
    member = st.builds(
        "{}{}:{}{}".format,
        st.sampled_from(["", " ", "\n"]),
        st.sampled_from(_NAMES).map('"{}"'.format),
        st.sampled_from(["", " "]),
        st.sampled_from(_VALUES),
    )
    return st.lists(member, max_size=4).map(lambda members: "{" + ",".join(members) + "}")


def _good_lists() -> st.SearchStrategy[str]:
    texts = st.text(st.characters(codec="utf-8"), max_size=4)
    entry = st.fixed_dictionaries(
        {},
        optional={
            "tables": st.lists(texts, max_size=3) | st.none(),
            "parameterValues": texts,
            "userName": texts,
            "timestamp": st.integers(-(2**63), 2**63 - 1),
        },
    )
    return entry.map(json.dumps)


def _bodies() -> st.SearchStrategy[bytes]:
    objects = st.lists(_objects() | _good_lists(), max_size=5)
    text = st.one_of(
        _objects(),
        st.lists(_good_lists(), max_size=5).map("\n".join),
        st.tuples(objects, st.sampled_from(["\n", "\n", "\r\n", "\n\n", "", " ", ","])).map(
            lambda pair: pair[1].join(pair[0])
        ),
        objects.map(lambda many: f"[{','.join(many)}]\n"),
        st.lists(st.sampled_from(_TOKENS), max_size=12).map("".join),
        st.lists(st.sampled_from(_TOKENS), max_size=6).map(lambda tokens: f"{{{''.join(tokens)}}}\n{{}}"),
    )
    encoded = text.map(lambda body: body.encode("utf-8", "surrogatepass"))
    return (
        encoded
        | encoded
        | raw.files_of(DAY, max_size=1).map(lambda files: next(iter(files.values())))
        | encoded.map(lambda body: body.replace(b"a", b"\xff"))
    )


@settings(max_examples=120, deadline=None)
@given(
    bodies=st.lists(_bodies(), min_size=1, max_size=4),
    piece=st.sampled_from([1, 40, 1 << 20]),
    block=st.sampled_from([1, 40, 1 << 20]),
    at_once=st.sampled_from([1, 2, 256]),
)
def test_files_give_what_their_entries_give_one_by_one(
    bodies: list[bytes], piece: int, block: int, at_once: int
) -> None:
    files = {f"{number}.json": body for number, body in enumerate(bodies)}
    assert read(files, piece=piece, block=block, at_once=at_once) == read_one_by_one(files)


@pytest.mark.parametrize(
    "bodies",
    [
        [b"{}", b"", b'{"userName": "a"}\n{"userName": "b"}', b"{}"],
        [b"", b'{"userName": "a"}\n{"userName": "b"}\n'],
        [b"\n", b"{}\n{}\n", b"\n{}\n"],
        [b'{"userName": "a"}\n', b'{\n"userName": "b"\n}\n', b"{}\r\n"],
        [b'{"userName": "a"', b'"logId": "b"}'],
        [b'{"userName": "a', b'b"}'],
        [b"[{}", b"{}]"],
        [b"\xc3", b"\xbc"],
    ],
)
def test_objects_read_together_are_looked_at_each(bodies: list[bytes]) -> None:
    files = {f"{number}.json": body for number, body in enumerate([*bodies, b'{"userName": "good"}'])}
    assert read(files) == read_one_by_one(files)


@pytest.mark.parametrize(
    "body",
    [
        b'{"x": NaN}',
        b'{"x": -Infinity}',
        b'{"userName": "a"}\nnull',
        b'{"userName": "a"} null {"userName": "b"}',
        b'{"userName": "a"}{"userName": "b"}\n{\n"userName": "c"}',
        b'{"x": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'{"userName": "a"}\0{"userName": "b"}',
        b'\xef\xbb\xbf{"userName": "a"}',
        b'{"timestamp": 1, "timestamp": 2}',
        b'{"x": "\xff"}',
    ],
)
def test_what_the_parser_would_take_but_is_no_entry(body: bytes) -> None:
    files = {"a.json": b'{"userName": "good"}', "b.json": body, "c.json": b'{"userName": "good"}\n{}'}
    expected = read_one_by_one(files)
    assert read(files) == expected
    # Where a field stands twice the first counts; what is JSON but no object is set aside alone.
    assert len(expected[0]) == (4 if b"timestamp" in body or body.endswith(b"\nnull") else 3)


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries were converted each time."""
    counts: list[int] = []

    class Counting(Converter):
        def convert(self, entries: Entries) -> Any:
            counts.append(len(entries.hours))
            return super().convert(entries)

    monkeypatch.setattr(batches, "Converter", Counting)
    return counts


def test_entries_are_converted_together(converted: list[int]) -> None:
    entry = {"timestamp": 1, "tables": ["a", 'b"\\', "ü"], "parameterValues": "[1]", "statement": {"x": [1]}}
    good = json.dumps(entry).encode()
    lines = b"\n".join([good, b'{"tables": []}', b'{"statusCode": "1"}', b"", b'{"tables": null}'])
    rows, wrong = read({"a.json": good, "b.json": lines, "c.json": b"[%b]" % good})

    written = '["a","b\\"\\\\","ü"]'
    assert [row["tables"] for row in rows] == [written, written, "[]", None, written]
    assert [(item.key, item.position) for item in wrong] == [("b.json", 2)]
    assert converted == [5]


def test_entries_do_not_hold_on_to_much_that_is_set_aside(
    monkeypatch: pytest.MonkeyPatch, converted: list[int]
) -> None:
    monkeypatch.setattr(batch, "OBJECTS", 2)
    # Two objects are read at once: one of two bytes, and one that is no entry and is large.
    files = {f"{number:02}.json": b"{}" if number % 2 == 0 else b"x" * 1_000 for number in range(12)}
    rows, wrong = read(files, piece=1_500, at_once=1)

    assert (len(rows), len(wrong)) == (6, 6)
    assert converted == [3, 3]


def test_an_entry_may_be_as_large_as_is_taken() -> None:
    size = (16 << 20) - len(b'{"userName":""}')
    large = b'{"userName":"%b"}' % (b"x" * size)

    rows, wrong = read({"a.json": large, "b.json": large + b"\n{}", "c.json": large[:-2] + b'x"}'})

    assert [len(row["userName"] or "") for row in rows] == [size, size, 0]
    assert [(item.key, item.position) for item in wrong] == [("c.json", 0)]
