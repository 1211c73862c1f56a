"""Compaction gives the same rows whichever hours are reused and however the work is divided."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logs.columns import COLUMNS
from logs.compaction import build, rows, writer
from logs.compaction.build import CompactedDay, compact_day
from logs.compaction.rows import PreviousBuild
from logs.layout import day_prefix, day_start_ms, list_day
from tenantadmin.lib.objectstore import LocalStore, StoreError
from tenantadmin.lib.objectstore.storage import in_batches
from tests.analytics import raw
from tests.objects import read_object, save_object

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore import Batch, Entry

TENANT = UUID("11111111-2222-4333-8444-555555555555")
DAY = raw.DAYS[1]
START = day_start_ms(DAY)


class CountingStore(LocalStore):
    """Records which objects were read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads: list[str] = []

    def read_many(self, objects: Iterable[Entry]) -> Iterator[Batch]:
        for batch in super().read_many(objects):
            self.reads += [entry.key.removeprefix(day_prefix(TENANT, DAY)) for entry in batch.entries]
            yield batch


class Day:
    """A day whose objects change, and its builds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = CountingStore(root / "store")
        self.files: dict[str, bytes] = {}
        self.previous: PreviousBuild | None = None
        self._builds = 0

    def put(self, files: Mapping[str, bytes | None]) -> None:
        """Write, replace or (None) delete objects. Objects with the same bytes are not written again."""
        for name, body in files.items():
            key = day_prefix(TENANT, DAY) + name
            if body is None:
                self.store.delete(key)
                self.files.pop(name, None)
            elif self.files.get(name) != body:
                save_object(self.store, key, body)
                self.files[name] = body

    def build(self, previous: PreviousBuild | None = None) -> CompactedDay:
        """Compact the present objects."""
        self._builds += 1
        directory = self.root / f"build-{self._builds}"
        directory.mkdir()
        listing = list_day(self.store, tenant=TENANT, day=DAY)
        built = compact_day(self.store, listing, directory=directory, previous=previous)
        assert built.listing == listing
        assert {path.name for path in directory.iterdir()} <= {"day.parquet"}
        return built

    def rebuild(self) -> CompactedDay:
        """Compact the present objects on top of the previous rebuild."""
        built = self.build(self.previous)
        self.previous = None
        if built.file is not None:
            key = f"{TENANT}/compacted/{self._builds}.parquet"
            save_object(self.store, key, built.file.read_bytes())
            self.previous = PreviousBuild(key, built.rows, built.hours, built.quarantined)
        return built


def rows_of(built: CompactedDay) -> list[tuple[Any, ...]]:
    if built.file is None:
        return []
    names = ", ".join(f'"{column.name}"' for column in COLUMNS)
    query = f"SELECT {names}, _hour, _prefix_hour FROM read_parquet(?) ORDER BY file_row_number"
    with duckdb.connect() as connection:
        return connection.execute(
            query.replace("(?)", "(?, file_row_number = true)"), [str(built.file)]
        ).fetchall()


def entry(at: int | None = 0, **fields: Any) -> dict[str, Any]:
    return {"timestamp": None if at is None else START + at, **fields}


def lines(*entries: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps(item).encode() for item in entries)


@pytest.fixture
def day(tmp_path: Path) -> Day:
    return Day(tmp_path)


def names_in_order(built: CompactedDay) -> list[str]:
    return [row[1] for row in rows_of(built)]


# --- A rebuild that reuses hours --------------------------------------------------------------


def changes() -> st.SearchStrategy[list[dict[str, bytes | None]]]:
    gone: st.SearchStrategy[dict[str, bytes | None]] = st.dictionaries(
        st.sampled_from([f"{hour:02}/{name}.json" for hour in (0, 1, 12, 23) for name in "abcdé"]),
        st.none(),
        max_size=3,
    )
    changed = st.tuples(gone, raw.files_of(DAY, max_size=2)).map(lambda pair: {**pair[0], **pair[1]})
    return st.lists(gone | changed, min_size=1, max_size=4)


@pytest.mark.slow
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(first=raw.files_of(DAY, max_size=10), following=changes())
def test_reusing_hours_gives_the_same_rows_as_reading_everything(
    first: dict[str, bytes], following: list[dict[str, bytes | None]]
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_MAX_SHARE_TO_READ", 1.0)
        day = Day(Path(name))
        day.put(first)
        for change in [{}, *following]:
            day.put(change)
            reused, whole = day.rebuild(), day.build()
            assert rows_of(reused) == rows_of(whole)
            assert reused.quarantined == whole.quarantined
            assert reused.duplicates == whole.duplicates
            assert {hour: (state.digest, state.duplicates) for hour, state in reused.hours.items()} == {
                hour: (state.digest, state.duplicates) for hour, state in whole.hours.items()
            }


def test_only_changed_hours_are_read_again(day: Day) -> None:
    day.put({f"{hour:02}/a.json": lines(entry(hour, userName=f"u{hour}")) for hour in range(24)})
    assert day.rebuild().read_count == 24
    day.store.reads.clear()
    day.put({"07/b.json": lines(entry(7, userName="late")), "09/a.json": None})

    built = day.rebuild()

    assert day.store.reads == ["07/a.json", "07/b.json"]
    assert built.read_count == 2
    assert rows_of(built) == rows_of(day.build())
    assert (built.rows, "late" in names_in_order(built), "u9" in names_in_order(built)) == (24, True, False)


def test_a_duplicate_becomes_a_row_when_the_first_entry_is_deleted(day: Day) -> None:
    day.put({f"{hour:02}/a.json": lines(entry(hour)) for hour in range(24)})
    day.put({"03/x.json": lines(entry(userName="first", logId="x"))})
    day.put({"05/x.json": lines(entry(userName="second", logId="x"))})
    built = day.rebuild()
    assert built.duplicates == 1
    assert "second" not in names_in_order(built)
    day.store.reads.clear()

    day.put({"03/x.json": None})
    built = day.rebuild()

    assert sorted(day.store.reads) == ["03/a.json", "05/a.json", "05/x.json"]
    assert built.duplicates == 0
    assert "second" in names_in_order(built)


def test_a_reused_row_is_dropped_if_an_earlier_hour_gets_the_same_log_id(day: Day) -> None:
    day.put({f"{hour:02}/a.json": lines(entry(hour, logId=f"{hour}")) for hour in range(24)})
    day.rebuild()
    day.put({"02/b.json": lines(entry(99, userName="earlier", logId="20"))})
    built = day.rebuild()
    assert (built.rows, built.duplicates) == (24, 1)
    assert built.hours[20].superseded_by == (2,)

    day.put({"02/b.json": None})
    assert rows_of(day.rebuild()) == rows_of(day.build())


def test_a_reused_hour_keeps_its_known_duplicates(day: Day) -> None:
    day.put({f"{hour:02}/a.json": lines(entry(hour, logId=f"{hour}")) for hour in range(24)})
    day.put({"05/x.json": lines(entry(5, logId="2"), entry(5, logId="3"), entry(5, logId="5"))})
    day.rebuild()
    # It gets one more when an earlier hour has an entry of its own.
    for name, log_id, expected in (("09/b.json", "9 b", (3, (2, 3))), ("01/b.json", "5", (4, (1, 2, 3)))):
        day.put({name: lines(entry(9, logId=log_id))})
        day.store.reads.clear()
        built = day.rebuild()
        assert day.store.reads == [f"{name[:2]}/a.json", name]
        assert (built.hours[5].duplicates, built.hours[5].superseded_by) == expected
        assert built.hours[5].digest == built.listing.hours[5].digest
        assert (built.hours[4].duplicates, built.hours[4].superseded_by) == (0, ())
        assert built.duplicates == expected[0]


def test_a_rebuild_gives_the_same_rows_if_they_do_not_fit_into_memory(
    day: Day, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_MAX_BYTES_IN_MEMORY", 0)
    day.put({f"{hour:02}/a.json": lines(entry(hour, userName=f"u{hour}")) for hour in range(24)})
    day.rebuild()
    day.put({"07/b.json": lines(entry(7, userName="late"))})
    assert rows_of(day.rebuild()) == rows_of(day.build())


def flip(body: bytes, at: int) -> bytes:
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]


def flip_a_value(body: bytes) -> bytes:
    names = pq.ParquetFile(pa.BufferReader(body)).metadata.row_group(0).column(1)
    assert names.dictionary_page_offset is not None
    return flip(body, names.dictionary_page_offset + names.total_compressed_size - 3)


def flip_a_name(body: bytes) -> bytes:
    end = int.from_bytes(body[-8:-4], "little") + 8
    return flip(body, body.index(b"userName", len(body) - end))


def rewrite(query: str) -> Callable[[bytes], bytes]:
    """Return a function that rewrites a Parquet file with the result of ``query`` over it."""

    def change(body: bytes) -> bytes:
        with tempfile.TemporaryDirectory() as name, duckdb.connect() as connection:
            before, after = Path(name, "before.parquet"), Path(name, "after.parquet")
            before.write_bytes(body)
            chosen = query.replace("FILE", f"'{before}'")
            connection.execute(f"COPY ({chosen}) TO '{after}' (FORMAT parquet)")
            return after.read_bytes()

    return change


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "first half only": lambda body: body[: len(body) // 2],
    "last byte missing": lambda body: body[:-1],
    "empty": lambda _: b"",
    "not Parquet": lambda _: b'{"logId": null}',
    "value changed": flip_a_value,
    "page header changed": lambda body: flip(body, 5),
    "column name changed": flip_a_name,
    "column name not UTF-8": lambda body: body.replace(b"userName", b"\xffserName"),
    "without _prefix_hour": rewrite("SELECT * EXCLUDE (_prefix_hour) FROM FILE"),
    "column missing": rewrite("SELECT * EXCLUDE (xRealIp) FROM FILE"),
    "column of another type": rewrite("SELECT * REPLACE (statusCode::BIGINT AS statusCode) FROM FILE"),
    "rows missing": rewrite("SELECT * FROM FILE LIMIT 20"),
}


@pytest.mark.parametrize("damage", ["gone", *DAMAGES])
def test_the_whole_day_is_read_if_the_previous_file_cannot_be_reused(day: Day, damage: str) -> None:
    day.put({f"{hour:02}/a.json": lines(entry(hour, userName=f"u{hour}u{hour + 1}")) for hour in range(24)})
    day.rebuild()
    assert day.previous is not None
    key = day.previous.file
    if damage == "gone":
        day.store.delete(key)
    else:
        save_object(day.store, key, DAMAGES[damage](read_object(day.store, key)))
    day.put({"07/b.json": lines(entry(7, userName="late"))})

    built = day.rebuild()

    assert (built.rows, built.read_count) == (25, 25)
    assert rows_of(built) == rows_of(day.build())
    assert built.quarantined == day.build().quarantined


class FailingStore(CountingStore):
    """Cannot open its objects."""

    def open(self, name: str, mode: str = "rb") -> NoReturn:
        raise StoreError(f"cannot reach {name}")


def test_a_failing_store_does_not_count_as_a_damaged_file(day: Day) -> None:
    day.put({f"{hour:02}/a.json": lines(entry(hour)) for hour in range(24)})
    day.rebuild()
    day.put({"07/b.json": b'{"logId": null}'})
    day.store = FailingStore(day.root / "store")
    with pytest.raises(StoreError, match="cannot reach"):
        day.rebuild()
    assert day.store.reads == []


def test_a_failing_disk_does_not_count_as_a_damaged_file(day: Day, tmp_path: Path) -> None:
    day.put({f"{hour:02}/a.json": lines(entry(hour)) for hour in range(24)})
    day.rebuild()
    day.put({"07/b.json": b'{"logId": null}'})
    day.store.reads.clear()
    for blocked in ("previous.parquet", "reused.arrow"):
        directory = tmp_path / blocked
        (directory / blocked).mkdir(parents=True)
        listing = list_day(day.store, tenant=TENANT, day=DAY)
        with pytest.raises(StoreError, match=f"cannot build 2026-01-01 in {directory}"):
            compact_day(day.store, listing, directory=directory, previous=day.previous)
    assert day.store.reads == []


class ChangingStore(CountingStore):
    """Returns other bytes for one object than were listed, or no object if the bytes are empty."""

    name, body = "", b""

    def read_many(self, objects: Iterable[Entry]) -> Iterator[Batch]:
        for batch in super().read_many(objects):
            found = [
                (entry, self.body if entry.key.endswith(self.name) else body) for entry, body in batch.items()
            ]
            yield from in_batches((entry, body) for entry, body in found if body)


@pytest.mark.parametrize("body", [b"", b'{"userName": "quite another"}'])
def test_an_object_that_was_not_read_as_listed_is_read_again(day: Day, body: bytes) -> None:
    day.put({f"{hour:02}/a.json": lines(entry(hour, userName=f"u{hour}")) for hour in range(24)})
    day.rebuild()
    day.put({"07/b.json": lines(entry(7, userName="away")), "09/a.json": b'{"logId": null}'})
    store = ChangingStore(day.root / "store")
    store.name, store.body = "07/b.json", body
    directory = day.root / "away"
    directory.mkdir()
    listing = list_day(store, tenant=TENANT, day=DAY)
    built = compact_day(store, listing, directory=directory, previous=day.previous)
    assert "away" not in names_in_order(built)
    assert built.listing.digest != listing.digest
    assert built.file is not None
    save_object(day.store, "previous.parquet", built.file.read_bytes())
    day.previous = PreviousBuild("previous.parquet", built.rows, built.hours, built.quarantined)

    # The object is there again, as it was when it was listed.
    day.store.reads.clear()
    built = day.rebuild()

    assert day.store.reads == ["07/a.json", "07/b.json"]
    assert built.listing.digest == listing.digest
    assert rows_of(built) == rows_of(day.build())
    assert "away" in names_in_order(built)


def test_a_day_is_current_after_it_was_rebuilt_without_a_deleted_object(day: Day) -> None:
    day.put({"00/a.json": b'{"logId": null}', "07/b.json": b'{"logId": null}'})
    store = ChangingStore(day.root / "store")
    store.name = "07/b.json"
    built = compact_day(store, list_day(store, tenant=TENANT, day=DAY), directory=day.root)
    assert built.rows == 1
    day.put({"07/b.json": None})
    listing = list_day(day.store, tenant=TENANT, day=DAY)
    assert built.listing.digest != listing.digest
    assert day.rebuild().listing.digest == listing.digest


def test_the_whole_day_is_read_if_most_of_it_changed(day: Day) -> None:
    day.put({"00/a.json": lines(entry(0)), "01/a.json": lines(*[entry(1, userName="x" * 100)] * 5)})
    day.rebuild()
    day.put({"01/b.json": b'{"logId": null}'})
    assert day.rebuild().read_count == 3


def test_quarantined_entries_of_reused_hours_stay_listed(day: Day) -> None:
    day.put({f"{hour:02}/a.json": lines(entry(hour)) for hour in range(24)})
    day.put({"03/bad.json": b"[", "04/bad.json": b'{"userName": 1}'})
    day.rebuild()
    day.put({"04/bad.json": None, "05/bad.json": b"7"})
    built = day.rebuild()
    assert [(item.key[-11:], item.position) for item in built.quarantined] == [
        ("03/bad.json", None),
        ("05/bad.json", 0),
    ]


def test_quarantined_entries_are_listed_by_key_and_position(day: Day) -> None:
    day.put({f"{hour:02}/a.json": lines(entry(hour)) for hour in range(24)})
    day.put({"03/b.json": b'[7, {"logId": null}, 8]', "05/b.json": b"7\n" * 12, "05/c.json": b""})
    day.rebuild()
    day.put({"04/b.json": b'[{"logId": null}, 7]', "03/c.json": b'7\n{"logId": null}\n7'})
    assert [(item.key[-9:-5], item.position) for item in day.rebuild().quarantined] == [
        ("03/b", 0),
        ("03/b", 2),
        ("03/c", 0),
        ("03/c", 2),
        ("04/b", 1),
        *(("05/b", position) for position in range(12)),
        ("05/c", None),
    ]


def test_no_row_group_has_rows_on_both_sides_of_a_bound(day: Day) -> None:
    day.put({"00/a.json": lines(*[entry(number) for number in range(10)])})
    listing = list_day(day.store, tenant=TENANT, day=DAY)
    built = compact_day(day.store, listing, directory=day.root, bounds=[START + 3, START + 7])
    assert built.file is not None
    metadata = pq.read_metadata(built.file)
    assert [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)] == [3, 4, 3]


@pytest.mark.parametrize(("max_bytes", "in_memory"), [(24, True), (23, False), (15, False), (0, False)])
def test_rows_that_do_not_fit_into_memory_go_into_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_bytes: int, in_memory: bool
) -> None:
    monkeypatch.setattr(build, "SCHEMA", pa.schema([("number", pa.int64())]))
    monkeypatch.setattr(build, "_MAX_BYTES_IN_MEMORY", max_bytes)
    batches = [pa.record_batch({"number": [number]}) for number in (7, 8, 9)]

    found = build.collect_rows(iter(batches), tmp_path)

    if isinstance(found, list):
        assert found == batches
    else:
        assert pa.ipc.open_file(pa.memory_map(str(found))).read_all() == pa.Table.from_batches(batches)
    assert isinstance(found, list) == in_memory


# --- Limits of chunks, batches and row groups -------------------------------------------------


def mixed_files() -> dict[str, bytes]:
    """Return files of one or several entries, with late, duplicate, tied and invalid ones among them."""
    files: dict[str, bytes] = {}
    for number in range(60):
        hour = number // 6
        fields = {"userName": f"ü{number}", "logId": f"id{number % 37}" if number % 3 else None}
        late = 3_600_000 * (number % 5 == 0)
        files[f"{hour:02}/{number}.json"] = lines(entry(hour * 3_600_000 - late, **fields))
    files["04/many.json"] = lines(*[entry(number % 4, tables=["a", "b\n"]) for number in range(9)])
    files["04/wrong.json"] = b'[{"timestamp": 1}, {"timestamp": "1"}, {"timestamp": null, "logId": "id3"}]'
    files["11/none.json"] = b""
    return files


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (rows, "_CHUNK_BYTES", 1),
        (rows, "_MAX_WAITING", 0),
        (build, "_MAX_BYTES_IN_MEMORY", 0),
        (writer, "_ROWS_PER_STEP", 7),
        (writer, "ROW_GROUP_ROWS", 13),
        (writer, "_MIN_MEAN_RUN", 1),
        (writer, "_MIN_MEAN_RUN", 1_000),
        (writer, "_MAX_MAPPED_BATCHES", 1),
    ],
)
def test_limits_do_not_change_the_rows(
    day: Day, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, value: int
) -> None:
    day.put(mixed_files())
    expected = day.build()
    monkeypatch.setattr(rows, "_CHUNK_BYTES", 300)
    if module is writer:
        monkeypatch.setattr(build, "_MAX_BYTES_IN_MEMORY", 0)
    monkeypatch.setattr(module, name, value)

    built = day.build()

    assert rows_of(built) == rows_of(expected)
    assert built.quarantined == expected.quarantined
    assert built.duplicates == expected.duplicates > 0


def test_the_last_value_of_a_repeated_field_counts(day: Day) -> None:
    start = str(START).encode()
    day.put(
        {
            "00/a.json": b'{"timestamp": 1, "logId": "y", "userName": "a", "timestamp": %b, "logId": "x"}'
            % start,
            "00/b.json": b'{"userName": "c", "userName": "b", "logId": "y", "timestamp": 2}',
            "00/c.json": b'{"logId": "z", "logId": "x"}',
            "00/d.json": b'{"logId": 5, "logId": "d", "x": 1, "timestamp": 3}',
        }
    )
    built = day.build()
    assert [(row[0], row[1], row[29]) for row in rows_of(built)] == [
        (2, "b", "y"),
        (3, None, "d"),
        (START, "a", "x"),
    ]
    # Two of the times are of 1970.
    assert (built.duplicates, [item.position for item in built.quarantined]) == (1, [0, 0])


def test_objects_with_other_names_are_listed_and_not_read(day: Day) -> None:
    day.put(
        {
            "00/a.json": gzip.compress(b'{"logId": "x"}\n'),
            "00/a.json.gz": gzip.compress(b'{"logId": "y"}'),
            "00/b.ndjson": b'{"logId": "z"}',
            "00/c/d.json": b'{"logId": "z"}',
            "05/e.txt": b"",
            "f.json": b'{"logId": "z"}',
            "24/g.json": b'{"logId": "z"}',
        }
    )
    built = day.build()
    reason = "not read: the name does not end in .json, or the object lies in another folder"
    assert [row[29] for row in rows_of(built)] == ["x"]
    prefix = day_prefix(TENANT, DAY)
    assert [(item.key, item.position, item.reason) for item in built.quarantined] == [
        (prefix + name, None, reason)
        for name in ("00/a.json.gz", "00/b.ndjson", "00/c/d.json", "05/e.txt", "24/g.json", "f.json")
    ]
    day.put({"06/f.json": b'{"logId": "w"}'})
    assert len(day.build().quarantined) == 6


def test_row_groups_have_equal_sizes_and_separate_time_ranges(
    day: Day, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "ROW_GROUP_ROWS", 40)
    day.put({"00/a.json": lines(*[entry(number) for number in range(100)])})
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT row_group_num_rows, stats_min_value, stats_max_value, compression "
            "FROM parquet_metadata(?) WHERE path_in_schema = 'timestamp' ORDER BY row_group_id",
            [str(day.build().file)],
        ).fetchall()
    assert [(rows, int(low) - START, int(high) - START) for rows, low, high, _ in found] == [
        (34, 0, 33),
        (34, 34, 67),
        (32, 68, 99),
    ]
    assert {compression for *_, compression in found} == {"ZSTD"}


def test_a_look_up_by_log_id_skips_row_groups_without_it(day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "ROW_GROUP_ROWS", 40)
    day.put({"00/a.json": lines(*[entry(number, logId=f"log-{number}") for number in range(100)])})
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT bloom_filter_excludes FROM parquet_bloom_probe(?, 'logId', 'log-50') ORDER BY ALL",
            [str(day.build().file)],
        ).fetchall()
    assert found == [(False,), (True,), (True,)]


def test_json_columns_are_text_whether_the_entry_has_text_or_a_value(day: Day) -> None:
    day.put(
        {
            "00/a.json": b'[{"timestamp": 1, "tables": [ "a", "\\u00fc" ], "parameterValues":'
            b' {"n": [1, null]}}, {"timestamp": 2, "tables": "[1, ]", "parameterValues": "not json"},'
            b' {"timestamp": 3, "tables": [], "parameterValues": 7}, {"timestamp": 4, "tables": null}]'
        }
    )
    index = [column.name for column in COLUMNS].index
    assert [(row[index("tables")], row[index("parameterValues")]) for row in rows_of(day.build())] == [
        ('["a","ü"]', '{"n":[1,null]}'),
        ("[1, ]", "not json"),
        ("[]", "7"),
        (None, None),
    ]


def test_entries_with_a_timestamp_outside_the_day_count_under_the_hour_of_their_prefix(day: Day) -> None:
    day.put({"07/a.json": lines(entry(-1), entry(0), entry(86_399_999), entry(86_400_000), entry(None))})
    hours = {(row[0], row[-2]) for row in rows_of(day.build())}
    assert hours == {
        (START - 1, 7),
        (START, 0),
        (START + 86_399_999, 23),
        (START + 86_400_000, 7),
        (None, 7),
    }


def test_objects_of_the_day_before_are_not_read(day: Day) -> None:
    assert date(2026, 1, 1) == DAY
    save_object(day.store, f"{TENANT}/logs/2025/12/31/23/a.json", b'{"logId": null}')
    built = day.build()
    assert (built.file, built.rows, built.quarantined, dict(built.hours)) == (None, 0, (), {})
