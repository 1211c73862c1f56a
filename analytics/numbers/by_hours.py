"""Build a large day by its hours, on several workers, with the same rows and documents as from one file.

There are three stages. First, the objects of each hour become a file. Second, the files are searched for
entries that an earlier hour has too. Third, the rows of each span of the day become a file and groups. Each
finished part is a row (`DayPart`), so a killed build resumes, and a new object rebuilds only its hour and the
spans that use it (docs/decisions/0018-days-by-hours.md).
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import duckdb
import pyarrow.compute as pc

from analytics.numbers.executions import EXECUTIONS, keep_sql, merge_sql
from analytics.numbers.rollup import group_rows, merge_groups, open_rows, save_groups, write_day_tables
from analytics.numbers.store import new_engine, scratch_directory, upload, write_rows
from analytics.numbers.tables import ROLLUP_VERSION
from logs.compaction.build import (
    HourFile,
    TableNames,
    compact_day,
    find_spans,
    read_dropped,
    span_bounds,
    write_repeats,
    write_span,
)
from logs.compaction.rows import InvalidEntry, UnusableFile, refusing_damage
from logs.layout import DayListing, day_digest, list_day
from logs.models import DayPart
from logs.partitions import drop_parts, lock_files, lock_part, mark_damaged, part_key, read_parts, save_part
from logs.sources import local_path, local_paths
from tenantadmin.lib.database.connections import Busy
from tenantadmin.lib.objectstore import ObjectNotFound, ObjectStore, StoreError

if TYPE_CHECKING:
    import pyarrow as pa

#: Sends parts of a stage of a day to other workers. The mapping has the build that each part replaces.
SendParts: TypeAlias = "Callable[[uuid.UUID, date, str, Mapping[int, str]], None]"

HOUR, REPEATS, SPAN = DayPart.Stage.HOUR, DayPart.Stage.REPEATS, DayPart.Stage.SPAN
#: The file names of a part.
_LOG: Final = "parquet"
_GROUPS: Final = "groups.arrow"
_EXECUTIONS: Final = f"{EXECUTIONS}.parquet"
_THREADS: Final = 2


@dataclass(frozen=True, slots=True)
class HourlyDay:
    """A day that was built by hours and is not published yet.

    Attributes:
        listing: its digest is over the objects that the hours were built from.
        files: the keys of the spans' Parquet files, in the order of the rows.
        rollups: a local file for each table of the rollups; empty if there are no rows.
        spans: the build of each span, by number.
        table_names: how its objects spell the names of tables.
    """

    listing: DayListing
    files: Sequence[str]
    bytes: int
    rows: int
    objects_read: int
    duplicates: int
    quarantined: Sequence[InvalidEntry]
    rollups: Mapping[str, Path]
    spans: Mapping[int, str]
    table_names: TableNames

    def require_current(self) -> None:
        """Lock the files until the transaction ends.

        Raises:
            Busy: another worker has replaced some of them.
        """
        tenant, day = self.listing.tenant, self.listing.day
        lock_files(tenant=tenant, day=day)
        spans = read_parts(tenant=tenant, day=day, stage=SPAN)
        if {number: part.build for number, part in spans.items()} != self.spans:
            raise Busy(f"parts of {day} were built again")


def compact_by_hours(
    store: ObjectStore, listing: DayListing, *, directory: Path, send_parts: SendParts | None
) -> HourlyDay:
    """Build the stale parts of a day, and its rollups in ``directory``. The caller holds the day's lock.

    Args:
        send_parts: sends parts to other workers. This one builds the parts that no other has begun.

    Raises:
        Busy: objects or parts changed during the build; try again.
        StoreError: the store failed, or stored parts are damaged and will be built again.
    """
    mark_damaged(store, tenant=listing.tenant, day=listing.day)
    with _stale_on_damage(listing):
        digests = {hour: objects.digest for hour, objects in listing.hours.items()}
        hours = _build_stage(store, listing, HOUR, digests, send_parts=send_parts)
        repeats = _find_repeats(store, listing, hours)
        numbers = sorted({int(span) for part in hours.values() for span in part.facts["spans"]})
        sources = {number: _span_source(number, hours, repeats) for number in numbers}
        spans = _build_stage(store, listing, SPAN, sources, send_parts=send_parts)
        if any(part.source != sources[number] for number, part in spans.items()):
            raise Busy(f"parts of {listing.day} were built again")
        filled = [part for part in spans.values() if part.files]
        rollups: Mapping[str, Path] = {}
        if filled:
            groups = local_paths(store, (part.files[_GROUPS] for part in filled))
            parts = [(Path(path), part.facts["rows"]) for path, part in zip(groups, filled, strict=True)]
            with ThreadPoolExecutor(_THREADS) as pool:
                tables = write_day_tables(
                    merge_groups(parts), day=listing.day, directory=directory, pool=pool
                )
            executions = local_paths(store, (part.files[_EXECUTIONS] for part in filled))
            rollups = {**tables, EXECUTIONS: directory / _EXECUTIONS}
            write_rows(merge_sql(executions, day=listing.day), rollups[EXECUTIONS])
    facts = [part.facts for part in hours.values()]
    return HourlyDay(
        replace(listing, digest=day_digest({hour: part.source for hour, part in hours.items()})),
        [part.files[_LOG] for part in filled],
        sum(part.facts["bytes"] for part in filled),
        sum(part.facts["rows"] for part in filled),
        sum(fact["objects"] for fact in facts),
        sum(fact["duplicates"] for fact in facts) + sum(count for count, _ in _dropped(repeats).values()),
        [InvalidEntry(*item) for fact in facts for item in fact["quarantined"]],
        rollups,
        {number: part.build for number, part in spans.items()},
        # An hour that an earlier release built has none.
        TableNames.merge(fact.get("tableNames") for fact in facts),
    )


def build_part(
    store: ObjectStore,
    *,
    tenant: uuid.UUID,
    day: date,
    stage: str,
    number: int,
    before: str,
    wait: bool = False,
) -> None:
    """Build an hour or a span, unless another worker has done so.

    Args:
        before: the build of this part that the caller has seen, or empty. Another one makes this do nothing.

    Raises:
        Busy: another worker is building it, and ``wait`` is false.
        StoreError: the object store failed.
        UnusableFile: a file of another part is damaged.
    """
    with lock_part(tenant=tenant, day=day, stage=stage, number=number, wait=wait):
        previous = read_parts(tenant=tenant, day=day, stage=stage).get(number)
        if before != ("" if previous is None else previous.build):
            return
        part = DayPart(tenant_id=tenant, day=day, stage=stage, number=number, build=uuid.uuid4().hex)
        with scratch_directory() as scratch, refusing_damage():
            # DuckDB reads the day from the path.
            directory = scratch / f"day={day.isoformat()}"
            directory.mkdir()
            build = _build_hour if stage == HOUR else _build_span
            build(store, part, previous="" if previous is None else previous.source, directory=directory)


def _build_stage(
    store: ObjectStore,
    listing: DayListing,
    stage: str,
    sources: Mapping[int, str],
    *,
    send_parts: SendParts | None,
) -> dict[int, DayPart]:
    """Build the parts whose source differs from ``sources``. Return all parts, in order."""
    tenant, day = listing.tenant, listing.day
    parts = read_parts(tenant=tenant, day=day, stage=stage)
    drop_parts({number: part for number, part in parts.items() if number not in sources})
    stale = {
        number: parts[number].build if number in parts else ""
        for number, source in sources.items()
        if number not in parts or parts[number].source != source
    }
    if send_parts is not None and len(stale) > 1:
        send_parts(tenant, day, stage, stale)
    busy = []
    # Other workers begin with the first parts.
    for number in reversed(stale):
        try:
            build_part(store, tenant=tenant, day=day, stage=stage, number=number, before=stale[number])
        except Busy:
            busy.append(number)
    for number in busy:
        # If the other worker has died, this one builds the part.
        build_part(store, tenant=tenant, day=day, stage=stage, number=number, before=stale[number], wait=True)
    parts = read_parts(tenant=tenant, day=day, stage=stage)
    if parts.keys() != sources.keys() or any(parts[number].build == stale[number] for number in stale):
        raise Busy(f"the objects of {day} changed while they were listed")
    return parts


def _build_hour(store: ObjectStore, part: DayPart, *, previous: str, directory: Path) -> None:
    listing = list_day(store, tenant=part.tenant_id, day=part.day, hour=part.number)
    if not listing.hours or listing.hours[part.number].digest == previous:
        return
    compacted = compact_day(store, listing, directory=directory, bounds=span_bounds(part.day))
    spans = {}
    files = {}
    if compacted.file is not None:
        files[_LOG] = compacted.file
        spans = find_spans(compacted.file, day=part.day, hour=part.number)
    part.source = compacted.listing.hours[part.number].digest
    part.facts = {
        "objects": compacted.listing.count,
        "rows": compacted.rows,
        "duplicates": compacted.duplicates,
        # JSON in PostgreSQL cannot hold NUL.
        "quarantined": [
            (item.key, item.position, item.reason.replace("\0", "�")) for item in compacted.quarantined
        ],
        "tableNames": asdict(compacted.table_names),
        "spans": {str(number): asdict(span) for number, span in spans.items()},
    }
    _store_part(store, part, files)


def _build_span(store: ObjectStore, part: DayPart, *, previous: str, directory: Path) -> None:
    hours = read_parts(tenant=part.tenant_id, day=part.day, stage=HOUR)
    repeats = read_parts(tenant=part.tenant_id, day=part.day, stage=REPEATS).get(0)
    part.source = _span_source(part.number, hours, repeats)
    if part.source == previous:
        return
    own = {hour: item for hour, item in hours.items() if str(part.number) in item.facts["spans"]}
    part.facts = {"rows": 0, "bytes": 0}
    files: dict[str, Path] = {}
    kept: dict[str, str] = {}
    log = None
    first, *others = own.values()
    if not others and len(first.facts["spans"]) == 1 and str(first.number) not in _dropped(repeats):
        # The span has exactly the rows of this hour's file.
        log = Path(local_path(store, first.files[_LOG]))
        kept[_LOG], rows = first.files[_LOG], first.facts["rows"]
    else:
        dropped = _read_dropped(store, repeats)
        paths = local_paths(store, (item.files[_LOG] for item in own.values()))
        sources = [
            HourFile(Path(path), item.facts["rows"], dropped.get(hour))
            for path, (hour, item) in zip(paths, own.items(), strict=True)
        ]
        written = write_span(sources, span=part.number, day=part.day, directory=directory)
        if written is not None:
            log, rows = written.path, written.rows
            files[_LOG] = log
    if log is not None:
        files[_GROUPS] = directory / _GROUPS
        with open_rows(log) as opened, ThreadPoolExecutor(_THREADS) as pool:
            save_groups(group_rows(opened, pool), files[_GROUPS])
        files[_EXECUTIONS] = directory / _EXECUTIONS
        write_rows(keep_sql(part.day), files[_EXECUTIONS], logs=[str(log)])
        part.facts = {"rows": rows, "bytes": log.stat().st_size}
    _store_part(store, part, files, kept=kept)


def _store_part(
    store: ObjectStore, part: DayPart, files: Mapping[str, Path], *, kept: Mapping[str, str] | None = None
) -> None:
    """Upload the files of a part and save its row. ``kept`` are files of another part that it uses too."""
    keys = {name: part_key(part, name) for name in files}
    upload(store, {keys[name]: path for name, path in files.items()})
    part.files = {**keys, **(kept or {})}
    part.bytes = sum(path.stat().st_size for path in files.values())
    if kept:
        part.bytes += part.facts["bytes"]
    save_part(part)


def _span_source(number: int, hours: Mapping[int, DayPart], repeats: DayPart | None) -> str:
    digest = hashlib.sha256(f"rollups {ROLLUP_VERSION}\n".encode())
    for hour, part in hours.items():
        span = part.facts["spans"].get(str(number))
        if span is not None:
            _, dropped = _dropped(repeats).get(str(hour), (0, ""))
            digest.update(f"{hour} {span['digest'] or part.build} {dropped}\n".encode())
    return digest.hexdigest()


def _find_repeats(store: ObjectStore, listing: DayListing, hours: Mapping[int, DayPart]) -> DayPart | None:
    """Find entries that an earlier hour has too. Only changed hours are compared with all others."""
    previous = read_parts(tenant=listing.tenant, day=listing.day, stage=REPEATS).get(0)
    if previous is not None and not previous.source:
        previous = None
    filled = {hour: part for hour, part in hours.items() if part.files}
    builds = {str(hour): part.build for hour, part in filled.items()}
    known: Mapping[str, str] = {} if previous is None else previous.facts["builds"]
    if previous is not None and known == builds:
        return previous
    changed = {hour for hour in filled if known.get(str(hour)) != builds[str(hour)]}
    replaced = [
        filled[hour].files[_LOG].replace(builds[str(hour)], known[str(hour)])
        for hour in changed
        if str(hour) in known
    ]
    logs = dict(zip(filled, local_paths(store, (item.files[_LOG] for item in filled.values())), strict=True))
    part = DayPart(tenant_id=listing.tenant, day=listing.day, stage=REPEATS, number=0)
    part.build = part.source = uuid.uuid4().hex
    part.facts = {"builds": builds, "dropped": {}}
    with new_engine() as engine:
        target = engine.directory / "repeats.parquet"
        write_repeats(
            engine.connection,
            changed=[logs[hour] for hour in changed],
            # Replaced files are deleted after some minutes.
            replaced=local_paths(store, filter(store.exists, replaced)),
            unchanged={hour: log for hour, log in logs.items() if hour not in changed},
            before=local_path(store, previous.files[_LOG]) if previous and previous.files else None,
            target=target,
        )
        dropped = read_dropped(target)
        for hour, ids in _by_hour(dropped).items():
            digest = hashlib.sha256(json.dumps(ids.to_pylist()).encode())
            part.facts["dropped"][str(hour)] = (len(ids), digest.hexdigest())
        _store_part(store, part, {_LOG: target} if dropped.num_rows else {})
    return part


def _dropped(repeats: DayPart | None) -> Mapping[str, tuple[int, str]]:
    """Return by hour the number of its dropped rows, and a digest over their ``logId``s."""
    return {} if repeats is None else repeats.facts["dropped"]


def _read_dropped(store: ObjectStore, repeats: DayPart | None) -> dict[int, Any]:
    if repeats is None or not repeats.files:
        return {}
    return _by_hour(read_dropped(Path(local_path(store, repeats.files[_LOG]))))


def _by_hour(dropped: pa.Table) -> dict[int, Any]:
    """Return the dropped ``logId``s by hour."""
    hours: Any = dropped["hour"].unique().to_pylist()
    return {hour: dropped["logId"].filter(pc.equal(dropped["hour"], hour)).combine_chunks() for hour in hours}


@contextmanager
def _stale_on_damage(listing: DayListing) -> Iterator[None]:
    """Mark all parts of a day as stale if the block finds damaged parts.

    Raises:
        StoreError: parts are damaged, or the disk failed.
    """
    try:
        with refusing_damage():
            yield
    except (ObjectNotFound, UnusableFile, duckdb.Error) as error:
        # For most files that DuckDB cannot decode, it raises one of these two general classes.
        if isinstance(error, duckdb.DatabaseError) and not isinstance(error, duckdb.InvalidInputException):
            raise
        DayPart.objects.filter(tenant_id=listing.tenant, day=listing.day).update(source="")
        raise StoreError(f"parts of {listing.day} are damaged: {error}") from error
