"""A result as JSON, NDJSON, CSV, Parquet and Arrow."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logs.sql.collecting import empty_batch
from logs.sql.protocol import QueryResult, ResultColumn
from logs.sql.results import arrow_pieces, csv_pieces, json_pieces, ndjson_pieces, parquet_pieces

if TYPE_CHECKING:
    Table = Callable[[QueryResult], pa.Table]

_TENANT = UUID(int=1)


def _result(query: str, *, names: list[str] | None = None, truncated: bool = False) -> QueryResult:
    with duckdb.connect(config={"arrow_lossless_conversion": True}) as connection:
        executed = connection.execute(query)
        types = [str(column[1]) for column in executed.description or ()]
        table = executed.to_arrow_table()
    return QueryResult(
        columns=tuple(
            ResultColumn(name, type_) for name, type_ in zip(names or table.column_names, types, strict=True)
        ),
        batches=tuple(table.to_batches(max_chunksize=1_500)) or (empty_batch(table.schema),),
        row_count=table.num_rows,
        truncated=truncated,
    )


def _text(pieces: Iterable[bytes]) -> str:
    return b"".join(pieces).decode()


def _from_parquet(result: QueryResult) -> pa.Table:
    return pq.read_table(io.BytesIO(b"".join(parquet_pieces(result))))


def _from_arrow(result: QueryResult) -> pa.Table:
    with pa.ipc.open_stream(b"".join(arrow_pieces(result))) as reader:
        return reader.read_all()


_AS_TABLES = pytest.mark.parametrize("as_table", [_from_parquet, _from_arrow])
_MIXED = "SELECT * FROM (VALUES (1, 'a,\"b', [1], NULL), (2, NULL, [], 1.5)) t(i, t, l, d)"


def test_a_result_as_json() -> None:
    result = _result(_MIXED, truncated=True)
    assert _text(json_pieces(result, tenant=_TENANT)) == (
        f'{{"tenantId":"{_TENANT}",'
        '"columns":[{"name":"i","type":"INTEGER"},{"name":"t","type":"VARCHAR"},'
        '{"name":"l","type":"INTEGER[]"},{"name":"d","type":"DECIMAL(2,1)"}],"rows":['
        '{"i":1,"t":"a,\\"b","l":[1],"d":null},{"i":2,"t":null,"l":[],"d":1.5}],'
        '"rowCount":2,"truncated":true}'
    )


def test_a_result_as_ndjson() -> None:
    assert _text(ndjson_pieces(_result(_MIXED))) == (
        '{"i":1,"t":"a,\\"b","l":[1],"d":null}\n{"i":2,"t":null,"l":[],"d":1.5}\n'
    )


def test_a_result_as_csv() -> None:
    assert _text(csv_pieces(_result(_MIXED))) == 'i,t,l,d\r\n1,"a,""b",[1],\r\n2,,[],1.5\r\n'


@_AS_TABLES
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (_MIXED, [(1, 'a,"b', [1], None), (2, None, [], "1.5")]),
        (
            "SELECT 170141183460469231731687303715884105727::HUGEINT AS h",
            [("170141183460469231731687303715884105727",)],
        ),
        ("SELECT sum(x) AS s FROM (VALUES (9223372036854775806), (1)) t(x)", [(2**63 - 1,)]),
        ("SELECT sum(x) AS s FROM (VALUES (9223372036854775807), (1)) t(x)", [("9223372036854775808",)]),
        ("SELECT sum(x) AS s FROM (VALUES (-9223372036854775808), (NULL)) t(x)", [(-(2**63),)]),
        ("SELECT sum(x) AS s FROM (SELECT 1 AS x WHERE false)", [(None,)]),
        ("SELECT repeat('9', 38)::UHUGEINT AS h", [("9" * 38,)]),
        ("SELECT INTERVAL 1 DAY AS i, union_value(a := 'x') AS u, '01'::BIT AS b", [("P1D", "x", "01")]),
        ("SELECT {'a': INTERVAL 1 DAY} AS s", [('{"a":"P1D"}',)]),
    ],
)
def test_a_result_as_a_table(as_table: Table, query: str, rows: list[tuple[Any, ...]]) -> None:
    table = as_table(_result(query))
    written = [
        tuple(str(value) if type(value).__name__ == "Decimal" else value for value in row.values())
        for row in table.to_pylist()
    ]
    assert written == rows


def test_timestamps_in_seconds_can_be_written_to_parquet(tmp_path: Path) -> None:
    moments = "'infinity', '-infinity', '2026-01-31 01:02:03', '294247-01-10', NULL"
    query = f"SELECT unnest([{moments}]::TIMESTAMP_S[]) AS t"
    shapes = (("t", "t"), ("[t]", "t[1]"), ("MAP {'k': {'s': t}}", "t['k']['s']"))
    for number, (selected, path) in enumerate(shapes):
        file = tmp_path / f"{number}.parquet"
        file.write_bytes(b"".join(parquet_pieces(_result(f"SELECT {selected} AS t FROM ({query})"))))
        read = f"SELECT list({path}::VARCHAR) FROM read_parquet('{file}')"
        assert duckdb.sql(read).fetchall() == [
            (["infinity", "-infinity", "2026-01-31 01:02:03", "294247-01-10 00:00:00", None],)
        ]


@pytest.mark.parametrize("pieces", [parquet_pieces, arrow_pieces])
def test_an_error_of_a_table_is_raised_before_the_first_piece(pieces: Callable[..., object]) -> None:
    out_of_range = pa.array([2**62]).view(pa.timestamp("s"))
    result = QueryResult(
        columns=(ResultColumn("t", "TIMESTAMP_S"),),
        batches=(pa.record_batch([out_of_range], ["t"]),),
        row_count=1,
        truncated=False,
    )
    with pytest.raises(pa.ArrowInvalid):
        pieces(result)


@_AS_TABLES
def test_a_result_without_rows(as_table: Table) -> None:
    result = _result("SELECT 1 AS a WHERE false")
    assert json.loads(_text(json_pieces(result, tenant=_TENANT))) == {
        "tenantId": str(_TENANT),
        "columns": [{"name": "a", "type": "INTEGER"}],
        "rows": [],
        "rowCount": 0,
        "truncated": False,
    }
    assert _text(ndjson_pieces(result)) == ""
    assert _text(csv_pieces(result)) == "a\r\n"
    assert as_table(result).column_names == ["a"]


def test_many_rows_are_written_in_small_pieces() -> None:
    result = _result("SELECT i FROM range(4000) t(i)")
    pieces = list(json_pieces(result, tenant=_TENANT))
    assert [row["i"] for row in json.loads(b"".join(pieces))["rows"]] == list(range(4_000))
    assert max(map(len, pieces)) < 15_000


@_AS_TABLES
def test_columns_with_repeated_names_keep_their_values(as_table: Table) -> None:
    result = _result("SELECT 1 AS a, 2 AS a", names=["a", "a_1"])
    assert json.loads(_text(json_pieces(result, tenant=_TENANT)))["rows"] == [{"a": 1, "a_1": 2}]
    assert as_table(result).column_names == ["a", "a_1"]


@_AS_TABLES
def test_types_are_kept_in_tables(as_table: Table) -> None:
    table = as_table(_result("SELECT 1::BIGINT AS n, 'x' AS t, DATE '2026-01-01' AS d"))
    assert table.schema.types == [pa.int64(), pa.string(), pa.date32()]


def test_long_rows_are_written_few_at_a_time() -> None:
    """Ten rows of 40 kB: about 128 KiB is converted at a time."""
    pieces = list(ndjson_pieces(_result("SELECT repeat('x', 40_000) AS text FROM range(10)")))
    assert [piece.count(b"\n") for piece in pieces] == [3, 3, 3, 1]
