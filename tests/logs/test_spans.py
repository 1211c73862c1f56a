"""The files of a day's hours, joined to the rows of one span of time."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logs.compaction import build, writer
from logs.compaction.build import (
    SPANS,
    HourFile,
    find_spans,
    own_span,
    read_dropped,
    span_bounds,
    write_repeats,
    write_span,
)
from logs.compaction.convert import SCHEMA
from logs.compaction.rows import UnusableFile
from logs.compaction.writer import write_day
from logs.layout import DAY_MS, HOUR_MS, day_start_ms
from tests.analytics import raw

DAY = raw.DAYS[1]
START = day_start_ms(DAY)


def row(at: int | None, **fields: Any) -> dict[str, Any]:
    """Return a row at so many milliseconds from midnight, or without a timestamp."""
    return {"timestamp": None if at is None else START + at, **fields}


def hour_file(path: Path, rows: Sequence[Mapping[str, Any]], *, hour: int = 7) -> HourFile:
    """Write the file of the objects under one hour's prefix."""
    table = pa.Table.from_pylist([{**item, "_prefix_hour": hour} for item in rows], schema=SCHEMA)
    written = write_day(table.to_batches(), reused=None, target=path, bounds=span_bounds(DAY))
    assert written is not None
    return HourFile(path, written.rows)


def names_of(path: Path) -> list[str | None]:
    return pq.read_table(path).column("userName").to_pylist()


def test_spans_begin_and_end_at_the_hours_of_the_day() -> None:
    bounds = span_bounds(DAY)
    assert len(bounds) == SPANS - 1
    assert (bounds[0], bounds[-1]) == (START, START + DAY_MS)
    assert {after - before for before, after in pairwise(bounds)} == {HOUR_MS}
    assert (own_span(0), own_span(23)) == (1, 24)


def test_rows_of_an_hours_file_are_counted_by_span(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "ROW_GROUP_ROWS", 2)
    moments: dict[int, list[int | None]] = {
        0: [None, None, None, -START, -1],
        1: [0, HOUR_MS - 1],
        2: [HOUR_MS],
        8: [7 * HOUR_MS] * 3,
        24: [DAY_MS - 1],
        25: [DAY_MS, DAY_MS + HOUR_MS, 2 * DAY_MS, 100 * DAY_MS],
    }
    file = hour_file(tmp_path / "7.parquet", [row(at) for own in moments.values() for at in own])

    found = find_spans(file.path, day=DAY, hour=7)

    assert {span: item.rows for span, item in found.items()} == {
        span: len(own) for span, own in moments.items()
    }
    assert {span for span, item in found.items() if not item.digest} == {8}
    assert {len(item.digest) for span, item in found.items() if span != 8} == {64}
    assert {span for span, item in find_spans(file.path, day=DAY, hour=0).items() if not item.digest} == {1}


def test_rows_without_a_timestamp_are_before_the_day(tmp_path: Path) -> None:
    file = hour_file(tmp_path / "7.parquet", [row(None), row(None)])
    assert {span: item.rows for span, item in find_spans(file.path, day=DAY, hour=7).items()} == {0: 2}


def test_the_digest_of_a_span_changes_with_its_rows_only(tmp_path: Path) -> None:
    stray = [row(1, userName="a", tables="x"), row(2, userName="b")]

    def digest(*rows: Mapping[str, Any]) -> str:
        file = hour_file(tmp_path / "7.parquet", rows)
        return find_spans(file.path, day=DAY, hour=7)[1].digest

    expected = digest(*stray)
    assert digest(*stray, row(7 * HOUR_MS, userName="own"), row(-1, userName="before")) == expected
    changed = [
        digest(stray[0]),
        digest(stray[0], row(2, userName="c")),
        digest(stray[0], row(3, userName="b")),
        digest(row(1, userName="a", tables="y"), stray[1]),
        digest(*stray, row(5)),
    ]
    assert len({expected, *changed}) == 6


def test_many_rows_in_a_span_of_another_hour_have_no_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_MAX_DIGESTED", 2)
    file = hour_file(tmp_path / "7.parquet", [row(1), row(2), row(DAY_MS), row(DAY_MS), row(DAY_MS)])
    found = find_spans(file.path, day=DAY, hour=7)
    assert {span: (item.rows, bool(item.digest)) for span, item in found.items()} == {
        1: (2, True),
        25: (3, False),
    }


@pytest.mark.parametrize("max_bytes", [256 << 20, 0])
def test_a_span_has_the_rows_of_all_hours_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_bytes: int
) -> None:
    monkeypatch.setattr(build, "_MAX_BYTES_IN_MEMORY", max_bytes)
    first = [row(1, userName="a1"), row(3, userName="a3"), row(HOUR_MS, userName="later")]
    second = [row(2, userName="b2"), row(3, userName="b3"), row(-1, userName="before")]
    files = [
        hour_file(tmp_path / "0.parquet", first, hour=0),
        hour_file(tmp_path / "1.parquet", second, hour=1),
    ]
    directory = tmp_path / "span"
    directory.mkdir()

    written = write_span(files, span=1, day=DAY, directory=directory)

    assert written is not None
    assert (written.path, written.rows, written.duplicates) == (directory / "day.parquet", 4, {})
    # Of tied rows the first by object key is the last.
    assert names_of(written.path) == ["a1", "b2", "b3", "a3"]
    assert list(directory.iterdir()) == [written.path]


def test_a_span_leaves_out_the_entries_that_an_earlier_hour_has(tmp_path: Path) -> None:
    rows = [row(number, userName=log_id, logId=log_id) for number, log_id in enumerate("abc")]
    file = hour_file(tmp_path / "7.parquet", [*rows, row(9, userName="without")])
    dropped = HourFile(file.path, file.rows, pa.array(["a", "c", "other"]))
    written = write_span([dropped], span=1, day=DAY, directory=tmp_path)
    assert written is not None
    assert names_of(written.path) == ["b", "without"]

    all_dropped = HourFile(file.path, file.rows, pa.array(["a", "b", "c", None]))
    assert write_span([all_dropped], span=1, day=DAY, directory=tmp_path) is None


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "not Parquet": lambda _: b"PAR1, but not more",
    "empty": lambda _: b"",
    "footer": lambda body: body[:-9] + b"\xff" + body[-8:],
    "name of a column": lambda body: body.replace(b"userName", b"\xffserName"),
    "page": lambda body: body.replace(b"some name", b"SOME name"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_span_is_not_written_from_a_damaged_file(tmp_path: Path, damage: str) -> None:
    file = hour_file(tmp_path / "7.parquet", [row(1, userName="some name"), row(7 * HOUR_MS)])
    body = file.path.read_bytes()
    damaged = DAMAGES[damage](body)
    assert damaged != body
    file.path.write_bytes(damaged)
    with pytest.raises(UnusableFile, match=r".{15}"):
        write_span([file], span=1, day=DAY, directory=tmp_path)


def test_a_span_is_not_written_from_a_file_with_another_number_of_rows(tmp_path: Path) -> None:
    file = hour_file(tmp_path / "7.parquet", [row(1), row(7 * HOUR_MS)])
    with pytest.raises(UnusableFile, match=r"^it has 1 rows, not 2$"):
        write_span([HourFile(file.path, 3)], span=1, day=DAY, directory=tmp_path)


def test_a_file_that_is_gone_does_not_count_as_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_span([HourFile(tmp_path / "gone.parquet", 1)], span=1, day=DAY, directory=tmp_path)


# --- Entries that several hours have ----------------------------------------------------------


class Hours:
    """The ``logId``s of a day's hours, which change, and the files that say which hours share one."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._ids: dict[int, list[str | None]] = {}
        self._files: dict[int, str] = {}
        self._before: Path | None = None
        self._builds = 0

    def change(self, ids: Mapping[int, Collection[str | None]]) -> list[dict[str, Any]]:
        """Give these hours other ``logId``s, none for no file, and return the rows of the next file."""
        self._builds += 1
        replaced = [self._files.pop(hour) for hour in ids if hour in self._files]
        unchanged = dict(self._files)
        changed = []
        for hour, own in ids.items():
            self._ids[hour] = list(own)
            if own:
                path = self._root / f"{self._builds}-{hour}'s.parquet"
                hour_file(path, [row(hour * HOUR_MS, logId=log_id) for log_id in own], hour=hour)
                changed.append(str(path))
                self._files[hour] = str(path)
        target = self._root / f"repeats'{self._builds}.parquet"
        with duckdb.connect() as connection:
            write_repeats(
                connection,
                changed=changed,
                replaced=replaced,
                unchanged=unchanged,
                before=None if self._before is None else str(self._before),
                target=target,
            )
        self._before = target
        return pq.read_table(target).to_pylist()

    def dropped(self) -> list[tuple[str, int, int]]:
        """Return ``logId``, hour and hour of the kept entry as the file has them."""
        assert self._before is not None
        table = read_dropped(self._before)
        assert table.column_names == ["logId", "hour", "kept"]
        return [(item["logId"], item["hour"], item["kept"]) for item in table.to_pylist()]

    def expected(self) -> list[tuple[str, int, int]]:
        first: dict[str, int] = {}
        found: list[tuple[str, int, int]] = []
        for hour, ids in sorted(self._ids.items()):
            own = sorted(log_id for log_id in ids if log_id is not None)
            found += [
                (log_id, hour, first[log_id]) for log_id in own if first.setdefault(log_id, hour) != hour
            ]
        return found


def repeat(log_id: str, hour: int, kept: int) -> dict[str, Any]:
    return {"logId": log_id, "hour": hour, "kept": kept}


def test_hours_that_share_a_log_id_are_written_with_the_first_of_them(tmp_path: Path) -> None:
    hours = Hours(tmp_path)
    assert hours.change({3: ["a", "b's", None], 5: ["b's", "a", "c"], 9: ["b's", "d", None]}) == [
        repeat("a", 3, 3),
        repeat("b's", 3, 3),
        repeat("a", 5, 3),
        repeat("b's", 5, 3),
        repeat("b's", 9, 3),
    ]
    assert hours.dropped() == [("a", 5, 3), ("b's", 5, 3), ("b's", 9, 3)]


def test_hours_that_share_no_log_id_are_not_written(tmp_path: Path) -> None:
    hours = Hours(tmp_path)
    assert hours.change({3: ["a", None], 5: ["b", None]}) == []
    assert hours.dropped() == []


def test_after_a_change_the_other_hours_keep_their_shared_entries(tmp_path: Path) -> None:
    hours = Hours(tmp_path)
    hours.change({3: ["a", "x"], 5: ["a", "b"], 9: ["a", "b", "x", "y"]})
    # Hour 3 has "a" no longer, and now shares "y".
    hours.change({3: ["x", "y"]})
    assert hours.dropped() == [("a", 9, 5), ("b", 9, 5), ("x", 9, 3), ("y", 9, 3)]
    # Nothing is new in hour 5, whose file is written again.
    hours.change({5: ["a"]})
    assert hours.dropped() == [("a", 9, 5), ("x", 9, 3), ("y", 9, 3)]
    # A new hour before all others.
    hours.change({0: ["a", "z"]})
    assert hours.dropped() == [("a", 5, 0), ("a", 9, 0), ("x", 9, 3), ("y", 9, 3)]
    # All hours change at once, and one has no entries any more.
    hours.change({0: ["a"], 3: [], 5: ["a", "b"], 9: ["b", "c"]})
    assert hours.dropped() == [("a", 5, 0), ("b", 9, 5)]


@pytest.mark.parametrize("literals", [0, 1, 100])
def test_changed_hours_share_the_same_as_if_all_hours_were_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, literals: int
) -> None:
    monkeypatch.setattr(build, "_MAX_LITERALS", literals)
    chosen = random.Random(7)  # noqa: S311 - the same hours in every run
    hours = Hours(tmp_path)
    for _ in range(5):
        changed = chosen.sample(range(4), chosen.randint(1, 3))
        hours.change({hour: chosen.sample([*"abcdef", None], chosen.randint(0, 5)) for hour in changed})
        assert hours.dropped() == hours.expected()
