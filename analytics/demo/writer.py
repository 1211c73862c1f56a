"""Write generated log entries into the object store, in the form in which a Gateway delivers them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import orjson
from django.core.files.base import ContentFile

from analytics.demo.generate import generate
from logs.layout import logs_prefix

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date
    from uuid import UUID

    from analytics.demo.generate import Entry, GeneratedMarker, Hour
    from analytics.demo.profile import Profile
    from tenantadmin.lib.objectstore import ObjectStore

#: Threads that write objects. A write mostly waits for the disk or the network.
_WRITERS: Final = 4
_HOURS_OF_A_DAY: Final = 24
#: An entry whose ``logId`` starts with this is delivered in an object of its own: one in 256.
_SINGLE_PREFIX: Final = "00"


@dataclass(frozen=True, slots=True)
class LogPlan:
    """The parameters of a tenant's logs. The same plan always gives the same objects."""

    profile: Profile
    tenant_id: UUID
    first_day: date
    days: int
    seed: int
    entries: int

    @property
    def last_day(self) -> date:
        return self.first_day + timedelta(days=self.days - 1)


@dataclass(slots=True)
class WrittenDay:
    """The entries of a day, and the markers that they caused."""

    rows: list[Entry] = field(default_factory=list)
    markers: list[GeneratedMarker] = field(default_factory=list)


def write_logs(store: ObjectStore, plan: LogPlan) -> Iterator[WrittenDay]:
    """Write the logs of a plan. Yield after each day.

    Existing objects are written again with the same bytes, so another run completes a killed one.

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
    with ThreadPoolExecutor(_WRITERS) as pool:
        # Wait for the writes of each day, so that only one day is in memory.
        for _ in range(plan.days):
            day = WrittenDay()
            pending = []
            for _ in range(_HOURS_OF_A_DAY):
                hour = next(hours)
                day.rows += hour.entries
                day.markers += hour.markers
                pending += [
                    pool.submit(store.save, key, ContentFile(content))
                    for key, content in pack_hour(hour, tenant_id=plan.tenant_id)
                ]
            for write in pending:
                write.result()
            yield day


def pack_hour(hour: Hour, *, tenant_id: UUID) -> list[tuple[str, bytes]]:
    """Return the keys and contents of one hour's objects: one NDJSON batch, and some single entries."""
    prefix = f"{logs_prefix(tenant_id)}{datetime.fromtimestamp(hour.start / 1000, UTC):%Y/%m/%d/%H}/"
    singles = [entry for entry in hour.entries if entry["logId"].startswith(_SINGLE_PREFIX)]
    objects = [
        (f"{prefix}{entry['timestamp']}-{entry['logId']}.json", orjson.dumps(entry)) for entry in singles
    ]
    batch = b"".join(
        orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE)
        for entry in hour.entries
        if not entry["logId"].startswith(_SINGLE_PREFIX)
    )
    if batch:
        objects.append((f"{prefix}{hour.start}-batch.json", batch))
    return objects
