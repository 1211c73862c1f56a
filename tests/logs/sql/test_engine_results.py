"""Results of the engine, written as NDJSON, CSV and Parquet."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logs.sql.engines.remote import decode_result, encode_result
from logs.sql.protocol import Limits, LogSource, QueryFailed
from logs.sql.results import csv_pieces, ndjson_pieces, parquet_pieces

if TYPE_CHECKING:
    from logs.sql.engines.local import LocalEngine
    from logs.sql.protocol import QueryResult

_EMPTY = LogSource("empty", ())


def _run(engine: LocalEngine, statement: str) -> QueryResult:
    return engine.execute(source=_EMPTY, statement=statement, limits=Limits())


def _rows(result: QueryResult) -> list[dict[str, Any]]:
    return [json.loads(line) for line in b"".join(ndjson_pieces(result)).splitlines()]


def _parquet(result: QueryResult) -> pa.Table:
    return pq.read_table(io.BytesIO(b"".join(parquet_pieces(result))))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("MAP {'a': true}", {"a": True}),
        ("MAP {'a': [true, NULL]}", {"a": [True, None]}),
        ("MAP {}::MAP(VARCHAR, BOOLEAN)", {}),
        ("{'m': [MAP {false: 1}]}", {"m": [{"false": 1}]}),
        ("(SELECT histogram(i > 1) FROM range(5) t(i))", {"false": 2, "true": 3}),
    ],
)
def test_a_map_of_booleans_is_a_json_object(engine: LocalEngine, expression: str, value: object) -> None:
    result = _run(engine, f"SELECT {expression} AS m")
    assert _rows(result) == [{"m": value}]
    written = b"".join(csv_pieces(result)).decode().removeprefix("m\r\n").strip().strip('"')
    assert json.loads(written.replace('""', '"')) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("round(95::DECIMAL(2), -1)", 100),
        ("round(-95::DECIMAL(2), -1)", -100),
        ("ceil(99.5::DECIMAL(3, 1))", 100),
        ("[round(95::DECIMAL(2), -1), NULL]", [100, None]),
        ("{'a': MAP {'b': round(99.95::DECIMAL(4, 2), 1)}}", {"a": {"b": 100.0}}),
    ],
)
def test_a_decimal_may_have_more_digits_than_its_type(
    engine: LocalEngine, expression: str, value: object
) -> None:
    result = _run(engine, f"SELECT {expression} AS d, 1.5::DECIMAL(2, 1) AS e FROM range(3)")
    assert _rows(result) == [{"d": value, "e": 1.5}] * 3
    assert decode_result(encode_result(result)).row_count == 3
    assert _parquet(result).num_rows == 3


def test_a_decimal_of_39_digits_is_an_error_of_the_query(engine: LocalEngine) -> None:
    with pytest.raises(QueryFailed, match="more than 38 digits"):
        _run(engine, "SELECT round(99999999999999999999999999999999999995::DECIMAL(38), -1) AS d")


def test_text_that_is_not_utf8_is_found_beside_a_wide_decimal(engine: LocalEngine) -> None:
    with pytest.raises(QueryFailed, match="not UTF-8"):
        _run(engine, r"SELECT {'d': round(95::DECIMAL(2), -1), 't': regexp_extract('é', '\C')} AS s")


def test_a_map_of_booleans_is_a_map_in_parquet(engine: LocalEngine) -> None:
    table = _parquet(_run(engine, "SELECT if(i = 1, MAP {'a': true}, NULL) AS m FROM range(2) t(i)"))
    assert pa.types.is_map(table.schema.types[0])
    assert table.to_pylist() == [{"m": None}, {"m": [("a", True)]}]


def test_a_union_of_many_rows_keeps_its_values(engine: LocalEngine) -> None:
    union = "if(i < 1500, union_value(n := i), union_value(t := 'x')::UNION(n BIGINT, t VARCHAR))"
    rows = _rows(_run(engine, f"SELECT {union} AS u FROM range(2500) t(i)"))
    assert [row["u"] for row in rows] == [*range(1_500), *["x"] * 1_000]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[union_value(a := TIME '24:00:00')]", ["24:00:00"]),
        ("union_value(a := [TIME '24:00:00'])", ["24:00:00"]),
        ("union_value(a := union_value(b := MAP {TIME '24:00:00': true}))", {"24:00:00": True}),
    ],
)
def test_a_union_can_contain_the_time_24_00(engine: LocalEngine, expression: str, value: object) -> None:
    assert _rows(_run(engine, f"SELECT {expression} AS u")) == [{"u": value}]


def test_a_parquet_file_without_rows_has_the_right_types(engine: LocalEngine) -> None:
    aggregates = """
        SELECT count(*) AS n, max('x') AS t, max(true) AS b, max(1::HUGEINT) AS h,
               max(union_value(a := TIME '24:00:00')) AS u, max(1.5::DECIMAL(10, 2)) AS d,
               max(TIMESTAMP_S '2026-01-01') AS s, max('a'::ENUM ('a')) AS e,
               histogram(i > 1) AS m, list({'a': [i]}) AS l
        FROM range(3) t(i)"""
    full, empty = (_run(engine, f"{aggregates} HAVING {condition}") for condition in ("true", "false"))
    for result in (empty, decode_result(encode_result(empty))):
        assert _parquet(result).schema == _parquet(full).schema
        assert _parquet(result).num_rows == 0
    assert _parquet(empty).schema.types[:5] == [pa.int64(), pa.string(), pa.bool_(), pa.int64(), pa.string()]


def test_duckdb_finds_the_nan_of_a_parquet_file(engine: LocalEngine, tmp_path: Path) -> None:
    file = tmp_path / "answer.parquet"
    numbers = _run(engine, "SELECT unnest([1.0::DOUBLE, 2, 'nan']) AS x, unnest([1.0::FLOAT, 2, 'nan']) AS y")
    file.write_bytes(b"".join(parquet_pieces(numbers)))
    counted = f"SELECT count(*) FILTER (x > 2), count(*) FILTER (y > 2) FROM '{file}'"
    assert duckdb.execute(counted).fetchone() == (1, 1)
    assert duckdb.execute(f"SELECT count(*) FROM '{file}' WHERE x > 2").fetchone() == (1,)


_KEY = "k" * 3_000


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT list({{'{_KEY}': 1::TINYINT}}) AS l FROM range(60000)",
        f"SELECT list('{_KEY}'::ENUM ('{_KEY}')) AS l FROM range(60000)",
        f"SELECT {{'a': [MAP {{1: {{'{_KEY}': i}}}}]}} AS s FROM range(20000) t(i)",
        f"SELECT [union_value(a := {{'{_KEY}': i}})] AS u FROM range(20000) t(i)",
        f"SELECT '{_KEY}'::ENUM ('{_KEY}') AS e FROM range(20000)",
        f'SELECT 1 AS "{_KEY}" FROM range(20000)',
    ],
)
def test_repeated_names_count_towards_the_limit_of_bytes(engine: LocalEngine, statement: str) -> None:
    limits = Limits(max_rows=30_000, max_bytes=8 << 20)
    result = engine.execute(source=_EMPTY, statement=statement, limits=limits)
    assert result.truncated
    written = sum(map(len, ndjson_pieces(result)))
    assert written <= limits.max_bytes
    # The result has as many rows as fit.
    assert result.row_count == 0 or written > limits.max_bytes * 0.98


def test_names_that_are_not_written_do_not_count(engine: LocalEngine) -> None:
    nulls = f"SELECT NULL::STRUCT({_KEY} INTEGER) AS s, NULL::ENUM ('{_KEY}') AS e FROM range(10000)"
    result = engine.execute(source=_EMPTY, statement=nulls, limits=Limits(max_bytes=4 << 20))
    assert (result.row_count, result.truncated) == (10_000, False)


def test_a_name_of_megabytes_is_refused(engine: LocalEngine) -> None:
    statement = """SELECT from_json('{}', '{"' || repeat('k', 9000000) || '": "INT"}') AS s"""
    with pytest.raises(QueryFailed, match=r"^The result's names and types are larger"):
        _run(engine, statement)


@pytest.mark.parametrize("expression", ["x", "[x]", "unnest(x)"])
def test_a_name_with_nul_is_refused(engine: LocalEngine, expression: str) -> None:
    struct = """from_json('{"\\u0000b":1,"\\u0000c":2}', '{"\\u0000b":"INT","\\u0000c":"INT"}')"""
    with pytest.raises(QueryFailed) as caught:
        _run(engine, f"SELECT {expression} FROM (SELECT {struct} AS x)")
    assert caught.value.text == (
        r'The name "\u0000b" contains NUL, which is not allowed in names of a result.'
        " Choose another name, or cast the value to JSON."
    )
    assert _rows(_run(engine, f"SELECT {struct}::JSON AS x")) == [{"x": r'{"\u0000b":1,"\u0000c":2}'}]
