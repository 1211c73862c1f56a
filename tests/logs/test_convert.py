"""Entries that are converted together give the same rows as entries that are converted one by one.

Contract: "Query log entry and ``proxy_logs``".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import duckdb
import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logs.columns import COLUMNS
from logs.compaction import entries, rows
from logs.compaction.convert import Chunk, Converter, connect
from logs.compaction.entries import BadFile, check_values, split
from logs.compaction.rows import InvalidEntry, read_rows
from logs.layout import HOUR_MS, day_prefix, day_start_ms, near
from tenantadmin.lib.objectstore import Entry, storage
from tenantadmin.lib.objectstore.storage import in_batches
from tests.analytics import raw

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore import Batch


DAY = raw.DAYS[1]
#: An entry of 13 bytes.
_SHORT = b'{"logId":"a"}'


def read(
    files: Mapping[str, bytes], *, chunk: int = 1 << 20, block: int = 1 << 20, array: int = 256
) -> tuple[list[dict[str, Any]], list[InvalidEntry]]:
    """Return the rows of files, each in an hour of its own, and what is quarantined, with the file's name.

    Args:
        chunk: bytes of entries that are converted together.
        block: bytes of entries that are checked together.
        array: entries that DuckDB parses together.
    """
    prefix = day_prefix(UUID(int=1), DAY)
    objects = [
        (Entry(f"{prefix}{hour:02}/{name}", len(body), ""), body)
        for hour, (name, body) in enumerate(files.items())
    ]
    quarantined: list[InvalidEntry] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_CHUNK_BYTES", chunk)
        patch.setattr(rows, "_ENTRIES_PER_ARRAY", array)
        patch.setattr(entries, "_BLOCK_BYTES", block)
        found = [
            row
            for batch in read_rows(in_batches(objects), day=DAY, quarantined=quarantined)
            for row in batch.to_pylist()
        ]
    named = [replace(item, key=item.key[len(prefix) + 3 :]) for item in quarantined]
    return found, sorted(named, key=repr)


def read_one_by_one(files: Mapping[str, bytes]) -> tuple[list[dict[str, Any]], list[InvalidEntry]]:
    """Return the same as `read`, but check and convert each entry by itself."""
    found: list[dict[str, Any]] = []
    quarantined: list[InvalidEntry] = []
    for hour, (key, body) in enumerate(files.items()):
        try:
            parts = split(body, times=near(DAY))
        except BadFile as error:
            quarantined.append(InvalidEntry(key, None, str(error)))
            continue
        for position, value in enumerate(parts.values):
            alone = check_values([value], times=near(DAY))
            if alone.errors:
                quarantined.append(InvalidEntry(key, position, alone.errors[0]))
            if alone.corrected or not alone.errors:
                found.append(row_of(alone.corrected.get(0, bytes(value)), hour=hour))
    return found, sorted(quarantined, key=repr)


STRUCTURE = json.dumps({column.name: column.type.value for column in COLUMNS})


def row_of(entry: bytes, *, hour: int) -> dict[str, Any]:
    # The last value of a repeated field counts.
    members = msgspec.json.decode(entry, type=dict[str, msgspec.Raw])
    once = msgspec.json.encode(members).decode()
    found = duckdb.execute("SELECT from_json($1, $2)", [once, STRUCTURE]).fetchall()[0][0]
    row = {column.name: found[column.name] for column in COLUMNS}
    for column in COLUMNS:
        if column.never_null and row[column.name] is None:
            row[column.name] = 0
    own = -1 if found["timestamp"] is None else (found["timestamp"] - day_start_ms(DAY)) // HOUR_MS
    return {**row, "_hour": own if 0 <= own < 24 else hour, "_prefix_hour": hour}


# --- Random files -----------------------------------------------------------------------------

#: Tokens. Many combinations of them are almost JSON.
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


def _valid_entries() -> st.SearchStrategy[str]:
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
    objects = st.lists(_objects() | _valid_entries(), max_size=5)
    text = st.one_of(
        _objects(),
        st.lists(_valid_entries(), max_size=5).map("\n".join),
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


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(
    bodies=st.lists(_bodies(), min_size=1, max_size=4),
    chunk=st.sampled_from([1, 40, 1 << 20]),
    block=st.sampled_from([1, 40, 1 << 20]),
    array=st.sampled_from([1, 2, 256]),
)
def test_files_give_the_same_rows_as_their_entries_one_by_one(
    bodies: list[bytes], chunk: int, block: int, array: int
) -> None:
    files = {f"{number}.json": body for number, body in enumerate(bodies)}
    assert read(files, chunk=chunk, block=block, array=array) == read_one_by_one(files)


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
def test_objects_that_are_read_together_are_checked_separately(bodies: list[bytes]) -> None:
    files = {f"{number}.json": body for number, body in enumerate([*bodies, b'{"userName": "good"}'])}
    assert read(files) == read_one_by_one(files)


@pytest.mark.parametrize(
    "bodies",
    [
        [b'{"userName": "a"}\n{"statusCode": "1"}\n{"userName": "b"}\n7\n'],
        [b"7\n{}\n7\n{}"],
        [b'{"userName": "a"}\n{"userName": "b"}', b'{"userName": "c"}'],
        [b'{"userName": "a"}', b'{"userName": "b"}\n{"statusCode": "1"}\n{"userName": "c"}'],
    ],
)
@pytest.mark.parametrize("array", [1, 2, 256])
def test_entries_of_one_or_two_objects_are_checked_separately(bodies: list[bytes], array: int) -> None:
    files = {f"{number}.json": body for number, body in enumerate(bodies)}
    assert read(files, array=array) == read_one_by_one(files)


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
        b'{"timestamp": 1, "timestamp": 2}',
        b'{"x": "\xff"}',
    ],
)
def test_json_that_duckdb_accepts_is_quarantined_if_it_is_not_an_entry(body: bytes) -> None:
    files = {
        "a.json": b'{"userName": "good"}',
        "b.json": body,
        "c.json": b'{"userName": "good"}\n{"logId": null}',
    }
    expected = read_one_by_one(files)
    assert read(files) == expected
    # A repeated field is allowed, and JSON that is not an object is quarantined without the rest of its file.
    assert len(expected[0]) == (4 if b"timestamp" in body or body.endswith(b"\nnull") else 3)


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of entries in each conversion."""
    counts: list[int] = []

    class Counting(Converter):
        def convert(self, chunk: Chunk) -> Any:
            counts.append(len(chunk.hours))
            return super().convert(chunk)

    monkeypatch.setattr(rows, "Converter", Counting)
    return counts


def test_entries_of_several_files_are_converted_together(conversions: list[int]) -> None:
    entry = {"logId": "x", "tables": ["a", 'b"\\', "ü"], "parameterValues": "[1]", "statement": {"x": [1]}}
    valid = json.dumps(entry).encode()
    lines = b"\n".join([valid, b'{"tables": []}', b'{"statusCode": "1"}', b"", b'{"tables": null}'])
    found, quarantined = read({"a.json": valid, "b.json": lines, "c.json": b"[%b]" % valid})

    written = '["a","b\\"\\\\","ü"]'
    assert [row["tables"] for row in found] == [written, written, "[]", None, written]
    assert [(item.key, item.position) for item in quarantined] == [("b.json", 2)]
    assert conversions == [5]


#: Numbers that no DOUBLE holds among them. DuckDB writes -0 as 0.
_NUMBERS = st.from_regex(
    r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True
).filter("-0".__ne__)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.recursive(
            _NUMBERS | st.text(max_size=5).map(json.dumps) | st.sampled_from(["null", "true", '"[1.50]"']),
            lambda inner: (
                st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
                | st.lists(st.tuples(st.sampled_from(['"a"', '"1.5"']), inner), max_size=2).map(
                    lambda pairs: "{{{}}}".format(",".join(f"{name}:{value}" for name, value in pairs))
                )
            ),
            max_leaves=6,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_numbers_of_bound_values_stay_as_they_are_in_the_entry(rows: list[str]) -> None:
    body = "\n".join(
        f'{{"parameterValues": {value}, "logId": "{number}"}}' for number, value in enumerate(rows)
    )
    found, _ = read({"a.json": body.encode()})

    def parse(text: str | None) -> Any:
        # Numbers keep their text, pairs their order, and text is what it says.
        if text is None:
            return None
        return json.loads(text, parse_float=str, parse_int=str, object_pairs_hook=tuple)

    for value, row in zip(rows, found, strict=True):
        if value.startswith('"'):
            assert row["parameterValues"] == json.loads(value)
        else:
            assert parse(row["parameterValues"]) == parse(value)


def test_a_few_entries_do_not_keep_large_quarantined_objects_in_memory(
    monkeypatch: pytest.MonkeyPatch, conversions: list[int]
) -> None:
    monkeypatch.setattr(storage, "BATCH_OBJECTS", 2)
    # Each batch has two objects: a valid one of 13 bytes, and a large one that is quarantined.
    files = {f"{number:02}.json": _SHORT if number % 2 == 0 else b"x" * 1_000 for number in range(12)}
    found, quarantined = read(files, chunk=1_500, array=1)

    assert (len(found), len(quarantined)) == (6, 6)
    assert conversions == [3, 3]


@pytest.mark.parametrize(("chunk", "counts"), [(110, [5, 5, 2]), (111, [6, 6])])
def test_a_chunk_ends_with_the_entry_that_fills_it(
    conversions: list[int], chunk: int, counts: list[int]
) -> None:
    # Arrow counts 22 bytes: 13 of the entry, a line break and an offset.
    read({f"{number:02}.json": _SHORT for number in range(12)}, chunk=chunk, array=1)
    assert conversions == counts


@pytest.mark.parametrize(("chunk", "counts"), [(1_014, [2, 2, 2, 2, 1]), (1_522, [4, 4, 1])])
def test_a_chunk_ends_if_its_batches_have_twice_as_many_bytes(
    monkeypatch: pytest.MonkeyPatch, conversions: list[int], chunk: int, counts: list[int]
) -> None:
    monkeypatch.setattr(storage, "BATCH_OBJECTS", 2)
    # A batch has 1,014 bytes: 13 and 1,000, and a line break between them.
    read(
        {f"{number:02}.json": _SHORT if number % 2 == 0 else b"x" * 1_000 for number in range(18)},
        chunk=chunk,
        array=1,
    )
    assert conversions == counts


def test_rows_are_given_while_later_objects_are_not_read_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_CHUNK_BYTES", 1)
    monkeypatch.setattr(rows, "_MAX_WAITING", 2)
    taken: list[int] = []

    def batches() -> Iterator[Batch]:
        for hour in range(9):
            taken.append(hour)
            yield from in_batches(
                [(Entry(f"{day_prefix(UUID(int=1), DAY)}{hour:02}/a.json", 13, ""), _SHORT)]
            )

    found = read_rows(batches(), day=DAY, quarantined=[])
    read_before = [(next(found).column("_prefix_hour").to_pylist(), len(taken)) for _ in range(9)]
    assert read_before == [([hour], min(hour + 3, 9)) for hour in range(9)]
    assert next(found, None) is None


def test_a_chunk_must_have_one_hour_for_each_entry() -> None:
    with connect() as engine:
        converter = Converter(engine, day=DAY)
        texts = pa.array(["{}", "{}"], pa.large_string())
        assert converter.convert(Chunk([texts], bytes([3, 4]))).column("_hour").to_pylist() == [3, 4]
        with pytest.raises(AssertionError, match="3 entries gave 2 rows"):
            converter.convert(Chunk([texts], bytes(3)))


def test_columns_that_are_never_null_are_0_where_they_are_missing() -> None:
    found, _ = read({"a.json": b'{"logId":null}'})
    never_null = {column.name for column in COLUMNS if column.never_null}
    assert never_null
    assert found == [
        {
            **{column.name: 0 if column.name in never_null else None for column in COLUMNS},
            "_hour": 0,
            "_prefix_hour": 0,
        }
    ]


def test_an_entry_may_have_the_maximum_size() -> None:
    size = (16 << 20) - len(b'{"userName":""}')
    large = b'{"userName":"%b"}' % (b"x" * size)

    found, quarantined = read(
        {"a.json": large, "b.json": large + b'\n{"logId": null}', "c.json": large[:-2] + b'x"}'}
    )

    assert [len(row["userName"] or "") for row in found] == [size, size, 0]
    assert [(item.key, item.position) for item in quarantined] == [("c.json", 0)]
