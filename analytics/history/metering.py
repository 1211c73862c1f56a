"""Read what a warehouse billed, or when it was awake, by warehouse and day, to compare with the model.

Snowflake's ``WAREHOUSE_METERING_HISTORY`` has the credits of each hour; CREDITS_USED_COMPUTE leaves out cloud
services, which no execution of a warehouse bills. A warehouse of size XSMALL takes a credit an hour, and each
size twice as many as the one below.
Source: docs.snowflake.com/en/sql-reference/account-usage/warehouse_metering_history and
docs.snowflake.com/en/user-guide/cost-understanding-compute, read on 2026-11-29.

Snowflake's ``WAREHOUSE_EVENTS_HISTORY`` has when each cluster resumed and was suspended.
Source: docs.snowflake.com/en/sql-reference/account-usage/warehouse_events_history, read on 2026-11-29.

Databricks' ``system.billing.usage`` has the DBU of each hour, and the warehouse in ``usage_metadata``.
``system.compute.warehouse_events`` has how many clusters run after each event.
Source: docs.databricks.com/en/admin/system-tables/billing and
docs.databricks.com/en/admin/system-tables/warehouse-events, read on 2026-11-29.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from analytics.history.clock import Clock
from analytics.history.rows import BadHistory, Source
from analytics.history.tables import Column, read_count, read_records, read_text
from logs.layout import DAY_MS


class Metered(NamedTuple):
    """What a warehouse took on a day: credits or DBU; or how long it was awake, counted for each cluster."""

    units: Decimal | None = None
    awake_ms: int | None = None


#: By warehouse and day (UTC).
MeteredDays = dict[tuple[str, "date"], Metered]

_SIZES: Final = ("X-SMALL", "SMALL", "MEDIUM", "LARGE", "X-LARGE", "2X-LARGE", "3X-LARGE", "4X-LARGE")
#: Credits an hour of a warehouse by the name of its size, without signs.
CREDITS: Final = {
    **{name.replace("-", ""): 2**number for number, name in enumerate(_SIZES)},
    "5XLARGE": 256,
    "6XLARGE": 512,
}
_COLUMNS: Final = {
    Source.SNOWFLAKE: {
        "warehouse": Column(("warehouse_name",)),
        "at": Column(("start_time", "timestamp")),
        "amount": Column(("credits_used_compute", "credits_used"), "credits"),
        "event": Column(("event_name",), "events"),
        "state": Column(("event_state",), "whether an event ended"),
        "clusters": Column(("cluster_number",), "clusters"),
    },
    Source.DATABRICKS: {
        "warehouse": Column(("usage_metadata.warehouse_id", "warehouse_id", "usage_metadata")),
        "at": Column(("usage_start_time", "event_time")),
        "amount": Column(("usage_quantity",), "DBU"),
        "event": Column(("event_type",), "events"),
        "state": Column(("event_state",), "whether an event ended"),
        "clusters": Column(("cluster_count",), "clusters"),
    },
}


class _Event(NamedTuple):
    """An event of a warehouse. ``clusters`` is the cluster's number (Snowflake), or how many run after it."""

    at_ms: int
    name: str
    clusters: int


def read_metering(path: Path, source: Source, *, timezone: str) -> MeteredDays:
    """Return what a file says was billed, or of events, how long warehouses were awake.

    Raises:
        BadHistory: it is no metering of the source, or damaged.
    """
    columns = _COLUMNS.get(source)
    if columns is None:
        raise BadHistory("A server of PostgreSQL has no metering: leave --metering out.")
    clock = Clock(path, timezone)
    billed: dict[tuple[str, date], Decimal] = defaultdict(Decimal)
    events: dict[str, list[_Event]] = defaultdict(list)
    says_any = False
    records = read_records(path, columns, what=f"the metering of {source}", missing={})
    for number, (warehouse, at, amount, event, state, clusters) in records:
        says_any = says_any or amount is not None or event is not None
        name = _name(warehouse)
        if name is None or at is None:
            # What is billed for no warehouse, such as jobs.
            continue
        at_ms = clock.read(at, f"row {number}") // 1_000
        if event is None:
            billed[name, _day_of(at_ms)] += _read_units(amount, f"{path.name}, row {number}")
        elif str(state or "COMPLETED").upper() == "COMPLETED":
            events[name].append(_Event(at_ms, str(event).upper(), read_count(clusters) or 1))
    if not says_any:
        names = " nor ".join(columns[key].names[0].upper() for key in ("amount", "event"))
        raise BadHistory(f"{path.name} has neither {names}: no metering of {source}, and no events.")
    return {
        **{key: Metered(units=units) for key, units in billed.items()},
        **{key: Metered(awake_ms=length) for key, length in _measure_awake(events, source).items()},
    }


def _read_units(amount: Any, place: str) -> Decimal:
    try:
        return Decimal(str(amount or 0))
    except InvalidOperation:
        raise BadHistory(f"{place}: {str(amount)[:40]!r} is no amount.") from None


def _measure_awake(events: Mapping[str, Sequence[_Event]], source: Source) -> Mapping[tuple[str, date], int]:
    """Return how many ms the clusters of each warehouse were awake on each day, added up."""
    find_awake = _awake_clusters if source is Source.SNOWFLAKE else _running_clusters
    awake: dict[tuple[str, date], int] = defaultdict(int)
    for name, found in events.items():
        for start, end, count in find_awake(sorted(found)):
            for day, length in _by_day(start, end):
                awake[name, day] += count * length
    return awake


def _awake_clusters(events: Sequence[_Event]) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and number of awake clusters (one), from events of Snowflake in order of time.

    What was awake before the first event, or is after the last, counts from or up to there.
    """
    first, last = events[0].at_ms, events[-1].at_ms
    # Each event of the warehouse repeats an event of one of its clusters.
    kind = "CLUSTER" if any(event.name.endswith("_CLUSTER") for event in events) else "WAREHOUSE"
    resumed: dict[int, int] = {}
    seen: set[int] = set()
    for event in events:
        if event.name == f"RESUME_{kind}":
            resumed.setdefault(event.clusters, event.at_ms)
        elif event.name == f"SUSPEND_{kind}":
            start = resumed.pop(event.clusters, None if event.clusters in seen else first)
            if start is not None:
                yield start, event.at_ms, 1
        else:
            continue
        seen.add(event.clusters)
    yield from ((start, last, 1) for start in resumed.values())


def _running_clusters(events: Sequence[_Event]) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and number of running clusters between events of Databricks in order of time."""
    for event, following in pairwise(events):
        if event.name not in {"STARTING", "STOPPED"}:
            yield event.at_ms, following.at_ms, event.clusters


def _by_day(start: int, end: int) -> Iterator[tuple[date, int]]:
    """Yield the days (UTC) between two times, and how many ms are of each."""
    while start < end:
        until = min(end, (start // DAY_MS + 1) * DAY_MS)
        yield _day_of(start), until - start
        start = until


def _day_of(at_ms: int) -> date:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).date()


def _name(value: Any) -> str | None:
    if isinstance(value, str) and value.startswith("{"):
        value = json.loads(value)
    if isinstance(value, dict):
        value = value.get("warehouse_id")
    return read_text(value)


def credits_per_hour(sizes: Mapping[str, int]) -> int | None:
    """Return the credits an hour of the size that most statements ran on; None if it is not known."""
    known = {
        CREDITS[name]: count
        for size, count in sizes.items()
        if (name := size.upper().replace("-", "").replace("_", "")) in CREDITS
    }
    return max(known, key=lambda units: known[units]) if known else None
