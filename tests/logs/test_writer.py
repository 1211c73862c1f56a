"""The file of a day: which rows it has, in which order and in which row groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logs.compaction import writer
from logs.compaction.convert import SCHEMA
from logs.compaction.writer import WrittenFile, write_day
from logs.layout import day_start_ms
from tests.analytics import raw

START = day_start_ms(raw.DAYS[1])

Row = dict[str, Any]


def row(name: str, at: int | None, log_id: str | None = None, *, hour: int = 0) -> Row:
    return {"userName": name, "timestamp": at, "logId": log_id, "_prefix_hour": hour}


def batch(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(item) for item in rows], schema=SCHEMA)


def write(
    path: Path,
    *batches: Sequence[Row],
    reused: Sequence[Sequence[Row]] | None = None,
    bounds: Sequence[int] = (),
) -> WrittenFile:
    written = write_day(
        list(map(batch, batches)),
        reused=None if reused is None else list(map(batch, reused)),
        target=path / "day.parquet",
        bounds=bounds,
    )
    assert written is not None
    assert written.path == path / "day.parquet"
    assert written.rows == len(names_of(written))
    return written


def names_of(written: WrittenFile) -> list[str | None]:
    return pq.read_table(written.path).column("userName").to_pylist()


def groups_of(written: WrittenFile) -> list[int]:
    metadata = pq.read_metadata(written.path)
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


def test_no_rows_are_no_file(tmp_path: Path) -> None:
    assert write_day([], reused=None, target=tmp_path / "day.parquet") is None
    assert write_day([batch([])], reused=[batch([])], target=tmp_path / "day.parquet") is None
    assert not (tmp_path / "day.parquet").exists()


def test_a_missing_timestamp_counts_as_0_and_a_missing_log_id_as_an_empty_one(tmp_path: Path) -> None:
    written = write(
        tmp_path,
        [row("1 z", 1, "z"), row("1 without", 1), row("0 b", 0, "b")],
        [row("none a", None, "a"), row("none c", None, "c"), row("1 A", 1, "A"), row("-1 x", -1, "x")],
        [row("none without", None), row("1 empty", 1, "")],
    )
    assert names_of(written) == [
        "-1 x",
        "none without",
        "none a",
        "0 b",
        "none c",
        # Of tied rows the first is the last.
        "1 empty",
        "1 without",
        "1 A",
        "1 z",
    ]
    assert written.duplicates == {}


@pytest.mark.parametrize("first", [None, "w"])
def test_duplicates_are_counted_by_the_hours_of_both_entries(tmp_path: Path, first: str | None) -> None:
    written = write(
        tmp_path,
        [row("first", 1, first, hour=1), row("without", 2, hour=2), row("x", 3, "x", hour=3)],
        [row("y", 4, "y", hour=4), row("x again", 5, "x", hour=4), row("without too", 6, hour=5)],
        [row("x third", 7, "x", hour=5), row("y again", 8, "y", hour=5), row("x fourth", 9, "x", hour=5)],
    )
    assert names_of(written) == ["first", "without", "x", "y", "without too"]
    assert written.duplicates == {(4, 3): 1, (5, 3): 2, (5, 4): 1}


def test_reused_rows_lie_between_new_ones_by_the_hours_of_their_prefixes(tmp_path: Path) -> None:
    # In the previous file, of tied rows the first by object key is the last.
    previous = [
        [row("1 second", 7, hour=1), row("1 first", 7, hour=1), row("1 x", 9, "x", hour=1)],
        [row("3 second", 7, hour=3), row("3 first", 7, hour=3), row("3 y", 9, "y", hour=3)],
    ]
    new = [
        [row("0 first", 7, hour=0), row("0 second", 7, hour=0)],
        [row("2 first", 7, hour=2), row("2 second", 7, hour=2)],
        [row("2 x", 9, "x", hour=2), row("2 y", 9, "y", hour=2)],
    ]
    written = write(tmp_path, *new, reused=previous)
    assert names_of(written) == [
        "3 second",
        "3 first",
        "2 second",
        "2 first",
        "1 second",
        "1 first",
        "0 second",
        "0 first",
        "1 x",
        "2 y",
    ]
    assert written.duplicates == {(2, 1): 1, (3, 2): 1}


def test_tied_reused_rows_of_one_batch_keep_their_order(tmp_path: Path) -> None:
    rows = [row(name, 7) for name in ("c", "b", "a")]
    assert names_of(write(tmp_path, reused=[rows])) == ["c", "b", "a"]
    assert names_of(write(tmp_path, reused=[rows[:1], rows[1:]])) == ["c", "b", "a"]
    assert names_of(write(tmp_path, rows)) == ["a", "b", "c"]


def test_row_groups_between_two_bounds_have_one_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "ROW_GROUP_ROWS", 4)
    rows = [row(f"{at}", START + at) for at in [*range(3), *range(100, 110), *range(200, 205)]]
    written = write(tmp_path, rows, bounds=[START + at for at in (0, 50, 100, 101, 200, 300)])
    assert names_of(written) == [item["userName"] for item in rows]
    assert groups_of(written) == [3, 1, 3, 3, 3, 3, 2]
    assert groups_of(write(tmp_path, rows)) == [4, 4, 4, 4, 2]
    assert groups_of(write(tmp_path, rows[:10])) == [4, 4, 2]
    assert groups_of(write(tmp_path, rows[:9])) == [3, 3, 3]


def test_without_bounds_a_file_has_one_row_group(tmp_path: Path) -> None:
    assert groups_of(write(tmp_path, [row(str(at), START + at) for at in range(50)])) == [50]


@pytest.mark.parametrize("mean_run", [1, 3, 1_000])
@pytest.mark.parametrize("step", [1, 5, 1_000])
def test_rows_come_from_their_batches_however_they_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mean_run: int, step: int
) -> None:
    monkeypatch.setattr(writer, "_MIN_MEAN_RUN", mean_run)
    monkeypatch.setattr(writer, "_ROWS_PER_STEP", step)
    # Runs of one row and of several, forwards, backwards and with gaps.
    moments = [[1, 2, 3, 10, 12], [11, 4, 5], [9, 8, 7, 6], [13, 15, 14], [16], [17]]
    written = write(tmp_path, *([row(f"{at}", at) for at in own] for own in moments))
    assert names_of(written) == [f"{at}" for at in range(1, 18)]
    assert names_of(write(tmp_path, reused=[[row(f"{at}", at) for at in own] for own in moments])) == [
        f"{at}" for at in range(1, 18)
    ]
