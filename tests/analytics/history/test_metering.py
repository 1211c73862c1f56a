"""What a warehouse billed, and when it was awake, by its own files."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analytics.assessments.assess import compare_metering
from analytics.history.entries import Read
from analytics.history.metering import Metered, read_metering
from analytics.history.rows import BadHistory, Source

if TYPE_CHECKING:
    from analytics.history.metering import MeteredDays

MARCH = [date(2026, 3, day) for day in range(1, 4)]
MINUTE = 60_000
HOUR = 60 * MINUTE


def metered(body: str, tmp_path: Path, source: Source = Source.SNOWFLAKE) -> MeteredDays:
    path = tmp_path / "metering.csv"
    path.write_text(body)
    return read_metering(path, source, timezone="")


def snowflake(tmp_path: Path, *events: str) -> dict[tuple[str, date], int | None]:
    """Return how long warehouses were awake. An event is ``day time warehouse cluster name [state]``."""
    rows = ["TIMESTAMP,WAREHOUSE_NAME,CLUSTER_NUMBER,EVENT_NAME,EVENT_STATE"]
    for event in events:
        day, time, host, cluster, name, *state = event.split()
        rows.append(f"2026-03-0{day} {time}Z,{host},{cluster},{name},{state[0] if state else 'COMPLETED'}")
    return {key: found.awake_ms for key, found in metered("\n".join(rows), tmp_path).items()}


def test_clusters_are_awake_between_resume_and_suspend(tmp_path: Path) -> None:
    found = snowflake(
        tmp_path,
        "1 23:59 WH 1 RESUME_CLUSTER STARTED",
        "1 23:50 WH 1 RESUME_CLUSTER",
        # Events of the warehouse say the same again.
        "1 23:50 WH 0 RESUME_WAREHOUSE",
        "2 00:10 WH 2 RESUME_CLUSTER",
        "2 00:30 WH 2 SUSPEND_CLUSTER",
        "2 01:00 WH 1 SUSPEND_CLUSTER",
        "2 01:00 WH 0 SUSPEND_WAREHOUSE",
        "2 02:00 OTHER 1 RESUME_WAREHOUSE",
        "2 02:01 OTHER 1 SUSPEND_WAREHOUSE",
    )
    assert found == {
        ("WH", MARCH[0]): 10 * MINUTE,
        ("WH", MARCH[1]): HOUR + 20 * MINUTE,
        ("OTHER", MARCH[1]): MINUTE,
    }


def test_what_was_awake_before_or_is_afterwards_counts_within_the_events(tmp_path: Path) -> None:
    found = snowflake(
        tmp_path,
        "2 08:00 WH 1 RESUME_CLUSTER",
        "2 09:00 WH 2 SUSPEND_CLUSTER",
        # Nothing resumed it.
        "2 09:30 WH 2 SUSPEND_CLUSTER",
        "2 10:00 WH 1 RESIZE_CLUSTER",
    )
    assert found == {("WH", MARCH[1]): 3 * HOUR}


def test_databricks_says_how_many_clusters_run(tmp_path: Path) -> None:
    body = (
        "event_time,warehouse_id,event_type,cluster_count\n"
        "2026-03-02T08:00:00Z,w1,STARTING,1\n"
        "2026-03-02T08:05:00Z,w1,RUNNING,1\n"
        "2026-03-02T09:05:00Z,w1,SCALED_UP,3\n"
        "2026-03-02T09:15:00Z,w1,SCALED_DOWN,1\n"
        "2026-03-02T09:25:00Z,w1,STOPPED,0\n"
        "2026-03-02T12:00:00Z,w1,STARTING,1\n"
    )
    found = metered(body, tmp_path, Source.DATABRICKS)
    assert found == {("w1", MARCH[1]): Metered(awake_ms=HOUR + 30 * MINUTE + 10 * MINUTE)}


def test_credits_are_added_by_day(tmp_path: Path) -> None:
    body = (
        "START_TIME,WAREHOUSE_NAME,CREDITS_USED_COMPUTE\n"
        "2026-03-01 07:00:00Z,WH,0.25\n2026-03-01 08:00:00Z,WH,0.5\n"
        "2026-03-02 08:00:00Z,WH,\n2026-03-02 08:00:00Z,,7\n"
    )
    assert metered(body, tmp_path) == {
        ("WH", MARCH[0]): Metered(units=Decimal("0.75")),
        ("WH", MARCH[1]): Metered(units=Decimal(0)),
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("START_TIME,WAREHOUSE_NAME\n2026-03-01 07:00Z,WH\n", "neither CREDITS_USED_COMPUTE nor EVENT_NAME"),
        ("START_TIME,WAREHOUSE_NAME,CREDITS_USED\n2026-03-01 07:00Z,WH,many\n", "row 1: .many. is no amount"),
        ("WAREHOUSE_NAME,CREDITS_USED\nWH,1\n", "no column START_TIME"),
        ("START_TIME,CREDITS_USED\n2026-03-01 07:00Z,1\n", "no column WAREHOUSE_NAME"),
    ],
)
def test_what_is_no_metering_is_named(body: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadHistory, match=message):
        metered(body, tmp_path)


def test_postgresql_has_none(tmp_path: Path) -> None:
    with pytest.raises(BadHistory, match="leave --metering out"):
        metered("x\n", tmp_path, Source.POSTGRESQL)


def test_the_time_of_events_needs_no_size_to_be_compared() -> None:
    days: MeteredDays = {("WH", MARCH[0]): Metered(awake_ms=3 * HOUR)}
    (row,) = compare_metering(days, {"WH": {MARCH[0]: 2 * HOUR}}, Read())
    assert (row.metered, row.metered_ms, row.ratio) == (None, 3 * HOUR, 1.5)
    assert row.why == ["work-past-this-history"]
