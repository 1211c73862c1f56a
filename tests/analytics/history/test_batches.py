"""Rows are read by column, many at a time, and that makes no difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.history import standardize, tables
from analytics.history.entries import Choices
from analytics.history.rows import Source
from tests.analytics.history.reading import bad, read, read_body
from tests.analytics.history.stream import as_csvlog, as_databricks, as_snowflake, make_stream

if TYPE_CHECKING:
    from tests.analytics.history.stream import Sent

HEADER = b"QUERY_ID,QUERY_TEXT,START_TIME\n"
GOOD = b"q,SELECT 1,2026-03-01 12:00:00Z\n"
FUTURE = b"later,SELECT 1,2031-03-01 12:00:00Z\n"
NO_TIME = b"q,SELECT 1,yesterday\n"
NO_ZONE = b"q,SELECT 1,2026-03-01 12:00:00\n"
NO_TEXT = b"q,,2026-03-01 12:00:00Z\n"
NO_SECOND = "q,SELECT 1,2026-03-01 12:00:٠٠Z\n".encode()
BROKEN = b'q,"SELECT "x" FROM t",2026-03-01\n'


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([GOOD, FUTURE, NO_TIME], "statement later began in the future"),
        ([GOOD, NO_TIME, NO_TEXT], "row 2: 'yesterday'"),
        ([GOOD, NO_TEXT, NO_TIME], "row 2: QUERY_TEXT"),
        ([GOOD, NO_ZONE, FUTURE], "row 2: times with a zone and times without one (UTC, no zone)"),
        ([NO_ZONE, NO_SECOND, GOOD], "row 2: '2026-03-01 12:00:٠٠Z' is no time"),
        ([GOOD, NO_TIME, BROKEN], "row 2: 'yesterday'"),
        ([GOOD, b"\n", FUTURE, BROKEN], "statement later began in the future"),
        ([GOOD, BROKEN, NO_TIME], "line 3: "),
        ([b"\n", *[GOOD] * 4_100, NO_TIME, NO_TEXT], "row 4102: 'yesterday'"),
    ],
)
def test_an_error_is_of_the_first_bad_row(rows: list[bytes], error: str, tmp_path: Path) -> None:
    assert error in bad(HEADER + b"".join(rows), Source.SNOWFLAKE, tmp_path)


@pytest.mark.parametrize(
    ("source", "write"),
    [
        (Source.SNOWFLAKE, as_snowflake),
        (Source.DATABRICKS, as_databricks),
        (Source.POSTGRESQL, as_csvlog),
    ],
)
def test_neither_small_batches_nor_a_short_memory_make_a_difference(
    source: Source, write: Callable[[list[Sent]], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = write(make_stream(300))
    counted, entries = read_body(body, source, tmp_path / "1")
    monkeypatch.setattr(tables, "_BATCH_CHARS", 200)
    monkeypatch.setattr(standardize, "_ROOM", 2_000)
    again, same = read_body(body, source, tmp_path / "2")
    assert (again, same) == (counted, entries)
    assert len(entries) == 300


@pytest.mark.parametrize(
    ("compute", "host"),
    [
        ({"type": "WAREHOUSE", "warehouse_id": "w1"}, "w1"),
        ({"Warehouse_ID": "w1"}, "w1"),
        ({"warehouse_id": None, "cluster_id": "c1"}, "c1"),
        ('{"warehouse_id": "w1"}', "w1"),
        ("w1", "w1"),
        ({"type": "SERVERLESS"}, None),
        ("[1]", None),
        (None, None),
    ],
)
def test_the_warehouse_of_databricks_is_in_an_object_or_its_json(
    compute: Any, host: str | None, tmp_path: Path
) -> None:
    record = {"statement_text": "SELECT 1", "start_time": "2026-03-01T12:00:00Z", "compute": compute}
    _, entries = read_body(json.dumps(record).encode(), Source.DATABRICKS, tmp_path)
    assert entries[0]["serverHostname"] == host


def test_values_of_odd_types_are_read_as_texts_and_numbers(tmp_path: Path) -> None:
    base = {"query_text": "SELECT 1", "start_time": "2026-03-01 12:00:00Z", "warehouse_size": "Small"}
    rows: list[dict[str, Any]] = [
        {"execution_time": "5", "session_id": 7, "execution_status": {"is": "FAIL"}},
        {"execution_time": "2.6", "session_id": "", "execution_status": "success"},
        {"execution_time": None, "session_id": None, "execution_status": None},
        {"execution_time": -1, "session_id": True, "execution_status": ""},
    ]
    body = "\n".join(json.dumps({**base, **row}) for row in rows).encode()
    counted, entries = read_body(body, Source.SNOWFLAKE, tmp_path)
    # Without ids they are numbered.
    assert [entry["logId"] for entry in entries] == [f"history-{number}" for number in (1, 2, 3, 4)]
    assert [entry["warehouseExecutionTimeMs"] for entry in entries] == [None, 3, None, 0]
    assert [entry["sessionId"] for entry in entries] == ["7", None, None, "True"]
    assert counted.failed == 1


def test_parquet_may_have_nanoseconds(tmp_path: Path) -> None:
    moment = 1_772_366_400_123_456_789
    for zone in (None, "UTC"):
        times = pa.array([moment], pa.timestamp("ns", zone))
        path = tmp_path / "history.parquet"
        pq.write_table(pa.table({"QUERY_TEXT": ["SELECT 1"], "START_TIME": times}), path)
        _, entries = read(path, Choices(source=Source.SNOWFLAKE), tmp_path / f"{zone}")
        assert [entry["timestamp"] for entry in entries] == [moment // 1_000_000]
