"""Write generated log entries into the object store, in the format of a Gateway."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec
from django.core.files.base import ContentFile

from analytics.demo.generate import SEED, generate
from analytics.replay.load import DayFile
from logs.compaction.build import compact_day
from logs.layout import day_start_ms, logs_prefix
from logs.listing import list_day

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date
    from pathlib import Path
    from uuid import UUID

    from analytics.demo.generate import Hour
    from analytics.demo.profile import Profile, Publication
    from tenantadmin.lib.objectstore import ObjectStore

#: The number of threads that write objects. Writes mostly wait for the disk or the network.
_WRITERS: Final = 4
#: An entry whose ``logId`` starts with this (one in 256) is written as a single object.
_SINGLE_PREFIX: Final = "00"

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class LogPlan:
    """The parameters of a tenant's logs. The same plan always gives the same objects."""

    profile: Profile
    tenant_id: UUID
    first_day: date
    days: int
    entries: int
    seed: int = SEED

    @property
    def last_day(self) -> date:
        return self.first_day + timedelta(days=self.days - 1)

    @property
    def publications(self) -> list[Publication]:
        """The rulesets that were published until the end of the logs."""
        end = day_start_ms(self.first_day + timedelta(days=self.days))
        return [
            publication for publication in self.profile.publications(self.first_day) if publication.at < end
        ]


def write_logs(store: ObjectStore, plan: LogPlan) -> Iterator[list[Hour]]:
    """Write the logs of a plan. Yield the hours of each day after it is written.

    Existing objects are written again with the same bytes, so a second run completes a killed one.

    Raises:
        StoreError: the store failed.
    """
    hours = generate(
        plan.profile,
        tenant_id=str(plan.tenant_id),
        first_day=plan.first_day,
        days=plan.days,
        seed=plan.seed,
        entries=plan.entries,
    )

    def save(item: tuple[str, bytes]) -> None:
        key, content = item
        store.save(key, ContentFile(content))

    with ThreadPoolExecutor(_WRITERS) as pool:
        # Memory holds only one day.
        while day := list(islice(hours, 24)):
            objects = [item for hour in day for item in pack_hour(hour, tenant_id=plan.tenant_id)]
            list(pool.map(save, objects))
            yield day


def compact_days(
    store: ObjectStore, tenant_id: UUID, days: Iterable[date], *, directory: Path
) -> list[DayFile]:
    """Compact days with log entries into ``directory``, for a replay.

    Raises:
        StoreError: the store failed.
    """
    files = []
    for day in days:
        place = directory / f"day={day}"
        place.mkdir()
        compacted = compact_day(store, list_day(store, tenant=tenant_id, day=day), directory=place)
        files.append(DayFile(day, str(compacted.file)))
    return files


def pack_hour(hour: Hour, *, tenant_id: UUID) -> list[tuple[str, bytes]]:
    """Return the keys and contents of one hour's objects: one NDJSON batch, and some single entries."""
    prefix = f"{logs_prefix(tenant_id)}{datetime.fromtimestamp(hour.start / 1000, UTC):%Y/%m/%d/%H}/"
    objects = []
    batch = b""
    for entry in hour.entries:
        if entry["logId"].startswith(_SINGLE_PREFIX):
            objects.append((f"{prefix}{entry['timestamp']}-{entry['logId']}.json", _encode(entry)))
        else:
            batch += _encode(entry) + b"\n"
    if batch:
        objects.append((f"{prefix}{hour.start}-batch.json", batch))
    return objects
