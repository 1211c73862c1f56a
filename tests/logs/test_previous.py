"""Which hours of a day are read again, and how its previous file is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logs.compaction import rows
from logs.compaction.convert import SCHEMA
from logs.compaction.rows import HourState, PreviousBuild, UnusableFile, hours_to_read, read_batches
from logs.layout import DayListing, day_prefix, describe_day
from tenantadmin.lib.objectstore import Entry
from tests.analytics import raw

TENANT = UUID(int=1)
DAY = raw.DAYS[1]


def listing(sizes: Mapping[int, int], *, etag: str = "") -> DayListing:
    """Return a day with one object of this size in each hour."""
    prefix = day_prefix(TENANT, DAY)
    objects = [Entry(f"{prefix}{hour:02}/a.json", size, etag) for hour, size in sizes.items()]
    return describe_day(objects, tenant=TENANT, day=DAY)


def build_of(day: DayListing, superseded_by: Mapping[int, tuple[int, ...]]) -> PreviousBuild:
    states = {
        hour: HourState(objects.digest, 0, superseded_by.get(hour, ())) for hour, objects in day.hours.items()
    }
    return PreviousBuild("file", 0, states, [])


def to_read(
    before: Mapping[int, int], after: Mapping[int, int], **superseded_by: tuple[int, ...]
) -> set[int]:
    hours = {int(name.removeprefix("hour")): others for name, others in superseded_by.items()}
    return set(hours_to_read(listing(after), build_of(listing(before), hours)))


def test_hours_are_read_that_changed_appeared_or_are_gone() -> None:
    before = dict.fromkeys(range(10), 100)
    assert to_read(before, before) == set()
    assert to_read(before, {**before, 3: 101}) == {3}
    assert to_read(before, {**before, 12: 100}) == {12}
    assert to_read(before, {hour: 100 for hour in before if hour != 4}) == {4}
    assert to_read({}, before) == set(before)
    assert to_read(before, {}) == set(before)


def test_hours_with_duplicates_of_a_changed_hour_are_read() -> None:
    before = dict.fromkeys(range(10), 100)
    changed = {**before, 3: 101}
    assert to_read(before, changed, hour5=(1, 3), hour6=(1,), hour7=(5,)) == {3, 5}
    gone = {hour: 100 for hour in before if hour != 4}
    assert to_read(before, gone, hour4=(3,), hour8=(4,)) == {4, 8}


@pytest.mark.parametrize(("size", "hours"), [(300, {1}), (301, {0, 1})])
def test_all_hours_are_read_if_more_than_three_quarters_of_the_bytes_changed(
    size: int, hours: set[int]
) -> None:
    assert to_read({0: 100, 1: 7}, {0: 100, 1: size}) == hours


def test_the_bytes_of_an_hour_that_is_gone_do_not_count() -> None:
    assert to_read({0: 1, 1: 1, 2: 900}, {0: 1, 1: 1}) == {2}


def write(path: Path, names: list[str]) -> None:
    table = pa.Table.from_pylist([{"userName": name} for name in names], schema=SCHEMA)
    pq.write_table(table, path, row_group_size=4, store_schema=False)


def test_the_rows_of_a_file_are_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_BATCH_ROWS", 3)
    path = tmp_path / "day.parquet"
    write(path, [*"abcdefghi"])

    def read(*, rows: int, groups: list[int] | None = None) -> list[str | None]:
        batches = list(read_batches(path, rows=rows, groups=groups))
        assert max((batch.num_rows for batch in batches), default=0) <= 3
        return [name for batch in batches for name in batch.column("userName").to_pylist()]

    assert read(rows=9) == [*"abcdefghi"]
    assert read(rows=9, groups=[0, 2]) == [*"abcdi"]
    assert read(rows=9, groups=[1]) == [*"efgh"]
    assert read(rows=9, groups=[]) == []
    for count in (8, 10):
        with pytest.raises(UnusableFile, match=rf"^it has 9 rows, not {count}$"):
            read(rows=count)
    with pytest.raises(UnusableFile, match=r"^it has 5 rows, not 6$"):
        read(rows=10, groups=[0, 2])
