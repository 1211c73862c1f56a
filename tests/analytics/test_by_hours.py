"""A day that is built by hours has the rows, rollups and document of one file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from analytics.models import DayRollup, Kind
from analytics.summaries.day_rollup import write_rollups
from analytics.summaries.day_tables import DayTables
from analytics.summaries.days import find_stale_days, rebuild_day
from analytics.summaries.documents.day import day_document
from analytics.summaries.rollup_schema import TABLES
from analytics.summaries.store import read_document
from logs.compaction.build import compact_day
from logs.compaction.convert import SCHEMA
from logs.layout import day_prefix
from logs.listing import list_day
from logs.models import DayPart, Partition, QuarantinedEntry, SupersededFile
from tenantadmin.objectstore import LocalStore, default_store
from tests.analytics import raw
from tests.objects import save_object

if TYPE_CHECKING:
    from collections.abc import Mapping

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
            table: pq.read_table(store.uri(key)) for table, key in (rollup.files if rollup else {}).items()
        },
    }
    if partition is not None:
        tables = [pq.read_table(store.uri(key), partitioning=None) for key in partition.files]
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


def as_one_file(store: LocalStore, tenant: UUID) -> dict[str, Any]:
    """Return the same of a build as one file."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
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


def test_rows_rollups_and_document_are_those_of_one_file(store: LocalStore) -> None:
    @hypothesis_settings(
        max_examples=6,
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
