"""A day that is built by hours has the rows, rollups and document of one file."""

from __future__ import annotations

import json
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import call_command
from django.db import connection
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from analytics import tasks
from analytics.jobs.digests import _read_days
from analytics.models import DayRollup, Kind
from analytics.numbers.days import find_stale_days, mark_days_stale, rebuild_day
from analytics.numbers.documents import day_document
from analytics.numbers.executions import EXECUTIONS, keep_sql
from analytics.numbers.rollup import write_rollups
from analytics.numbers.state import mark_missing_objects
from analytics.numbers.store import new_engine, read_document
from analytics.numbers.tables import TABLES, DayTables
from analytics.published.verify import DocumentKey, verify_document
from logs.audit import Reader
from logs.compaction.build import compact_day
from logs.compaction.convert import SCHEMA
from logs.layout import HOUR_MS, day_prefix, day_start_ms, list_day, parts_prefix
from logs.models import DayPart, Partition, PendingBuild, QuarantinedEntry, SupersededFile
from logs.partitions import lock_part
from logs.pending import mark_days
from logs.sources import local_paths, log_source
from logs.sql.protocol import DayFiles
from logs.sql.view import LogView
from tenantadmin.lib.objectstore import LocalStore, StoreError, default_store
from tests.analytics import raw
from tests.analytics.builds import TENANT, random_entries
from tests.analytics.workers import Child
from tests.objects import read_object, save_object

if TYPE_CHECKING:
    from tests.factories import World

pytestmark = pytest.mark.django_db
DAY = raw.DAYS[1]


@pytest.fixture(autouse=True)
def store(object_store: Path, settings: Any) -> LocalStore:
    settings.BUILD_BY_HOURS_BYTES = -1
    store = default_store()
    assert isinstance(store, LocalStore)
    return store


def change(store: LocalStore, tenant: UUID, files: Mapping[str, bytes | None]) -> None:
    """Write, replace or (None) delete objects of the day."""
    for name, body in files.items():
        key = day_prefix(tenant, DAY) + name
        if body is None:
            store.delete(key)
        else:
            save_object(store, key, body)


def built(store: LocalStore, tenant: UUID) -> dict[str, Any]:
    """Return all that is stored about the day."""
    partition = Partition.objects.filter(tenant_id=tenant, day=DAY).first()
    rollup = DayRollup.objects.filter(tenant_id=tenant, day=DAY).first()
    document = read_document(tenant=tenant, kind=Kind.DAY, period=DAY.isoformat())
    quarantined = QuarantinedEntry.objects.filter(tenant_id=tenant).order_by("id")
    found: dict[str, Any] = {
        "quarantined": list(quarantined.values_list("key", "position", "reason")),
        "document": None if document is None else document.body,
        "rollups": {
            table: _read_rollup(table, *local_paths(store, [key]))
            for table, key in (rollup.files if rollup else {}).items()
        },
    }
    if partition is not None:
        tables = [pq.read_table(path, partitioning=None) for path in local_paths(store, partition.files)]
        found["rows"] = pa.concat_tables([SCHEMA.empty_table(), *tables])
        found["counts"] = (
            partition.listing_digest,
            partition.rows,
            partition.objects_read,
            partition.duplicates,
            partition.quarantined,
        )
        assert partition.bytes == sum(store.size(key) for key in partition.files)
    return found


def _read_rollup(table: str, path: str) -> Any:
    """Return a table of a rollup. Nobody depends on the order of equal executions."""
    read = pq.read_table(path)
    return sorted(map(repr, read.to_pylist())) if table == EXECUTIONS else read


def as_one_file(store: LocalStore, tenant: UUID) -> dict[str, Any]:
    """Return the same of a build as one file."""
    with tempfile.TemporaryDirectory() as name:
        # As the parts of a tenant's log are called.
        directory = Path(name, f"day={DAY}")
        directory.mkdir()
        listing = list_day(store, tenant=tenant, day=DAY)
        compacted = compact_day(store, listing, directory=directory)
        found: dict[str, Any] = {
            "quarantined": [
                (item.key, item.position, item.reason.replace("\0", "�")) for item in compacted.quarantined
            ],
            "document": None,
            "rollups": {},
        }
        rows = SCHEMA.empty_table()
        if compacted.file is not None:
            rows = pq.read_table(compacted.file, partitioning=None)
            files = write_rollups(compacted.file, day=DAY, directory=directory)
            found["rollups"] = {table: pq.read_table(files[table]) for table in TABLES}
            with new_engine() as engine:
                LogView(engine.connection).make_tolerant([str(compacted.file)])
                executions = directory / "executions.parquet"
                engine.connection.execute(f"COPY ({keep_sql(DAY)}) TO '{executions}'")
            found["rollups"][EXECUTIONS] = _read_rollup(EXECUTIONS, str(executions))
            found["document"] = b"".join(day_document(DayTables(files)))
        if listing.hours:
            found["rows"] = rows
            found["counts"] = (
                listing.digest,
                compacted.rows,
                listing.count,
                compacted.duplicates,
                len(compacted.quarantined),
            )
        return found


def assert_no_orphans(store: LocalStore, tenant: UUID) -> None:
    """Assert that rows name every object of the day's parts, and that every object that is named exists."""
    rows = Partition.objects.filter(tenant_id=tenant)
    current = {key for partition in rows for key in partition.files}
    current |= {key for part in DayPart.objects.filter(tenant_id=tenant) for key in part.files.values()}
    superseded = set(SupersededFile.objects.values_list("key", flat=True))
    stored = {item.key for item in store.list(f"{tenant}/compacted/")}
    assert not current & superseded
    assert current <= stored <= current | superseded


def changes() -> st.SearchStrategy[list[dict[str, bytes | None]]]:
    gone: st.SearchStrategy[dict[str, bytes | None]] = st.dictionaries(
        st.sampled_from([f"{hour:02}/{name}.json" for hour in (0, 1, 12, 23) for name in "abcdé"]),
        st.none(),
        max_size=3,
    )
    changed = st.tuples(gone, raw.files_of(DAY, max_size=3)).map(lambda pair: {**pair[0], **pair[1]})
    return st.lists(gone | changed, max_size=2)


@pytest.mark.slow
def test_rows_rollups_and_document_equal_a_build_in_one_file(store: LocalStore) -> None:
    @hypothesis_settings(
        max_examples=5,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(first=raw.files_of(DAY, max_size=10), following=changes())
    def check(first: dict[str, bytes], following: list[dict[str, bytes | None]]) -> None:
        tenant = uuid4()
        change(store, tenant, first)
        for files in [{}, *following]:
            change(store, tenant, files)
            rebuild_day(store, tenant=tenant, day=DAY)
            assert built(store, tenant) == as_one_file(store, tenant)
            assert find_stale_days(store, tenant=tenant) == []
            assert_no_orphans(store, tenant)

    check()


def entry(at: int, **fields: Any) -> dict[str, Any]:
    """Return an entry at a time in ms from midnight."""
    fields = {"userName": "Ana", "standardizedSql": "SELECT ?", "cacheStatus": "MISS", **fields}
    return {"timestamp": day_start_ms(DAY) + at, **fields}


def put(store: LocalStore, name: str, *entries: dict[str, Any]) -> None:
    change(store, TENANT, {name: b"\n".join(json.dumps(item).encode() for item in entries)})


def put_hours(store: LocalStore) -> None:
    """Write three hours: the second has a late entry of the first, the third an entry of both others."""
    put(store, "00/a.json", entry(1, logId="a"), entry(2, logId="b"))
    put(store, "01/a.json", entry(HOUR_MS - 1, logId="late"), entry(HOUR_MS, logId="c"))
    put(store, "02/a.json", entry(2 * HOUR_MS, logId="d"), entry(3, logId="a"), entry(4, logId="c"))


def rebuild(store: LocalStore, **options: Any) -> bool:
    return rebuild_day(store, tenant=TENANT, day=DAY, **options)


def builds() -> dict[tuple[str, int], str]:
    rows = DayPart.objects.filter(tenant_id=TENANT)
    return {(row.stage, row.number): row.build for row in rows}


def assert_as_one_file(store: LocalStore) -> None:
    assert built(store, TENANT) == as_one_file(store, TENANT)
    assert_no_orphans(store, TENANT)


def test_a_new_object_builds_its_hour_and_dependent_spans(store: LocalStore) -> None:
    put_hours(store)
    rebuild(store)
    before = builds()
    assert before.keys() == {
        *(("hour", number) for number in range(3)),
        ("repeats", 0),
        *(("span", number) for number in (1, 2, 3)),
    }
    files = Partition.objects.get(tenant_id=TENANT).files
    assert len(files) == 3
    assert not rebuild(store)

    # The late entry of this hour is the same as before, so the span that it is in stays.
    put(store, "01/new.json", entry(HOUR_MS + 5, logId="e"))
    rebuild(store)

    after = builds()
    assert {key for key in before if before[key] != after[key]} == {("hour", 1), ("repeats", 0), ("span", 2)}
    assert [key == earlier for key, earlier in zip(Partition.objects.get().files, files, strict=True)] == [
        True,
        False,
        True,
    ]
    assert_as_one_file(store)

    # This entry has the logId of one in a later hour, which the day loses.
    put(store, "00/new.json", entry(6, logId="d"))
    rebuild(store)

    assert Partition.objects.get().duplicates == 3
    unchanged = {key for key, build in builds().items() if build == after[key]}
    assert unchanged == {("hour", 1), ("hour", 2), ("span", 2)}
    assert_as_one_file(store)


def test_tasks_on_other_workers_build_parts_and_come_late_without_harm(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_hours(store)
    mark_days(tenant=TENANT, days=[DAY])
    sent: list[tuple[Any, ...]] = []

    def work(arguments: tuple[Any, ...], **_: Any) -> None:
        """Another worker has done the first part of each stage before this one begins."""
        sent.append(arguments)
        if sum(arguments[2] == stage for _, _, stage, *_ in sent) == 1:
            tasks.build_day_part(*arguments)

    monkeypatch.setattr(tasks.build_day_part, "apply_async", work)
    tasks.refresh_day(str(TENANT), DAY.isoformat())

    assert [arguments[2:] for arguments in sent] == [
        *(("hour", number, "") for number in range(3)),
        *(("span", number, "") for number in (1, 2, 3)),
    ]
    assert_as_one_file(store)
    done = builds()
    for arguments in sent:
        tasks.build_day_part(*arguments)
    assert builds() == done
    assert_as_one_file(store)


def test_a_part_that_another_worker_has_begun_is_waited_for(store: LocalStore) -> None:
    put_hours(store)
    workers = []

    def send_parts(_tenant: UUID, _day: date, stage: str, parts: Mapping[int, str]) -> None:
        """Another worker begins with the first part, and dies without building it."""
        locked = Event()

        def work() -> None:
            with lock_part(tenant=TENANT, day=DAY, stage=stage, number=min(parts), wait=True):
                locked.set()
                time.sleep(0.2)
            connection.close()

        workers.append(Thread(target=work))
        workers[-1].start()
        assert locked.wait(10)

    rebuild(store, send_parts=send_parts)

    assert len(workers) == 2
    for worker in workers:
        worker.join()
    assert_as_one_file(store)


def test_damaged_parts_are_made_again(store: LocalStore) -> None:
    put_hours(store)
    rebuild(store)
    hour = DayPart.objects.get(stage="hour", number=1).files["parquet"]
    save_object(store, hour, bytes(len(read_object(store, hour))))
    put(store, "00/new.json", entry(6, logId="new"))

    with pytest.raises(StoreError, match="damaged"):
        rebuild(store)
    rebuild(store)
    assert_as_one_file(store)

    # Missing ones are noticed before they are used.
    store.delete(DayPart.objects.get(stage="hour", number=2).files["parquet"])
    store.delete(DayPart.objects.get(stage="span", number=1).files["groups.arrow"])
    put(store, "00/new.json", entry(7, logId="newer"))
    rebuild(store)
    assert_as_one_file(store)


def flip(body: bytes, at: int) -> bytes:
    at %= len(body)
    return body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :]


@pytest.mark.parametrize(
    ("stage", "number", "name", "damage"),
    [
        # DuckDB reads the footer for entries that an earlier hour has too.
        ("hour", 1, "parquet", lambda body: flip(body, -9)),
        # Arrow reads the rows of a file with one span.
        ("hour", 3, "parquet", lambda body: flip(body, 5)),
        ("span", 4, "groups.arrow", lambda body: bytes(len(body))),
        ("span", 4, "groups.arrow", lambda body: flip(body, 8)),
    ],
)
def test_parts_are_made_again_whatever_is_damaged(
    store: LocalStore,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
    number: int,
    name: str,
    damage: Callable[[bytes], bytes],
) -> None:
    put_hours(store)
    put(store, "03/a.json", entry(3 * HOUR_MS, logId="own"))
    rebuild(store)
    key = DayPart.objects.get(stage=stage, number=number).files[name]
    save_object(store, key, damage(read_object(store, key)))
    put(store, "00/new.json", entry(6, logId="new"))
    if stage == "hour":
        monkeypatch.setattr("analytics.numbers.by_hours.ROLLUP_VERSION", -1)

    with pytest.raises(StoreError, match="damaged"):
        rebuild(store)
    rebuild(store)
    assert_as_one_file(store)


def test_after_a_restore_all_parts_are_made_again(store: LocalStore, object_store: Path) -> None:
    put_hours(store)
    call_command("rebuild", tenant=TENANT)
    shutil.rmtree(object_store / str(TENANT) / "compacted")
    shutil.rmtree(object_store / str(TENANT) / "rollups")

    call_command("rebuild", tenant=TENANT)

    assert_as_one_file(store)
    assert find_stale_days(store, tenant=TENANT) == []


@pytest.mark.parametrize("by_hours", [True, False])
def test_files_of_a_killed_worker_are_removed(store: LocalStore, settings: Any, by_hours: bool) -> None:
    put_hours(store)
    if not by_hours:
        # It was lower when the worker was killed.
        settings.BUILD_BY_HOURS_BYTES = 1 << 30
    save_object(store, f"{parts_prefix(TENANT, DAY)}hour01-{'0' * 32}.parquet", b"left")
    rebuild(store)
    assert_as_one_file(store)


def test_below_the_setting_a_day_becomes_one_file_again(store: LocalStore, settings: Any) -> None:
    put_hours(store)
    rebuild(store)
    assert len(Partition.objects.get().files) == 3
    settings.BUILD_BY_HOURS_BYTES = 1 << 30
    put(store, "00/new.json", entry(6, logId="new"))

    rebuild(store)

    assert len(Partition.objects.get().files) == 1
    assert builds() == {}
    assert_as_one_file(store)
    # And back: a day that is not listed before it is read.
    Partition.objects.all().delete()
    settings.BUILD_BY_HOURS_BYTES = 100
    rebuild(store)
    assert len(Partition.objects.get().files) == 3
    assert built(store, TENANT) == as_one_file(store, TENANT)


def test_staff_have_all_objects_read_again(store: LocalStore) -> None:
    put_hours(store)
    rebuild(store)
    before = builds()

    assert mark_days_stale(store, tenant=TENANT, first=DAY, last=DAY) == {DAY: True}
    assert list(PendingBuild.objects.values_list("tenant_id", "day")) == [(TENANT, DAY)]
    rebuild(store)

    assert not set(before.values()) & {build for (stage, _), build in builds().items() if stage == "hour"}
    assert_as_one_file(store)


@pytest.mark.slow
def test_queries_and_documents_read_all_files(store: LocalStore, world: World) -> None:
    tenant = world.tenant.pk
    chance = random.Random(7)  # noqa: S311  # reproducible, not secret
    entries = random_entries(chance, DAY)
    for number, hour in enumerate((3, 9, 10)):
        body = json.dumps(entries[number::3]).encode()
        save_object(store, f"{day_prefix(tenant, DAY)}{hour:02}/a.json", body)
    call_command("rebuild", tenant=tenant)
    partition = Partition.objects.get(tenant_id=tenant)
    assert len(partition.files) > 3

    (day,) = log_source(store, tenant=tenant).days
    assert day == DayFiles(DAY.isoformat(), tuple(map(store.uri, partition.files)))
    assert [log.files for log in _read_days(tenant)] == [partition.files]
    for key in (DocumentKey(tenant, Kind.DAY, DAY.isoformat()), DocumentKey(tenant, Kind.YEAR, "2026")):
        assert verify_document(store, key=key, reader=Reader("reader@example.org", "")).equal
    mark_missing_objects(store, tenant=tenant)
    assert find_stale_days(store, tenant=tenant) == []
    store.delete(partition.files[2])
    mark_missing_objects(store, tenant=tenant)
    assert find_stale_days(store, tenant=tenant) == [DAY]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_build_killed_at_any_write_resumes(store: LocalStore, object_store: Path, tmp_path: Path) -> None:
    put_hours(store)
    rebuild(store)
    old = as_one_file(store, TENANT)
    put(store, "00/new.json", entry(6, logId="d"), entry(HOUR_MS + 1, logId="new"))
    new = as_one_file(store, TENANT)
    places = set()
    progress, last = builds(), 1
    # Large documents are objects, and limits of bytes are whole numbers.
    environment = {"TMPDIR": str(tmp_path), "BUILD_BY_HOURS_BYTES": "1"}
    arguments = (
        "tests.analytics.killed_builds",
        str(connection.settings_dict["NAME"]),
        object_store.as_uri(),
    )
    with Child(*arguments, environment=environment) as builder:
        while find_stale_days(store, tenant=TENANT):
            builder.send(last)
            places.add(re.sub(r".*/|-?[0-9a-f]{32}", "", builder.read()))
            partition = Partition.objects.get(tenant_id=TENANT)
            rows = pa.concat_tables(
                [pq.read_table(path, partitioning=None) for path in local_paths(store, partition.files)]
            )
            assert rows in (old["rows"], new["rows"])
            # Before each write of what the builds before have not done.
            before, progress = progress, builds()
            last = last + 1 if progress == before else 1

    assert {"hour00.parquet", "repeats00.parquet", "span01.parquet", "span02.parquet"} <= places
    assert {"UPDATE logs_daypart", "UPDATE logs_partition", "INSERT INTO logs_supersededfile"} <= places
    found = built(store, TENANT)
    assert found["rows"] == new["rows"]
    assert found["counts"] == new["counts"]
    assert found["rollups"] == new["rollups"]
    put(store, "00/new.json", entry(6, logId="d"))
    rebuild(store)
    assert_as_one_file(store)
