"""Tables partitioned by month: made ahead and on demand, dropped by age, append-only where wanted."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import IntegrityError, connection, models, transaction
from django.db.migrations.operations import CreateModel
from django.db.migrations.state import ProjectState

from accounts.models import Event
from logs.models import LogRead, QueryRun
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.months import (
    PartitionByMonth,
    keep_months,
    monthly_models,
    old_months,
    stored_months,
)

if TYPE_CHECKING:
    from tenantadmin.lib.database.months import MonthlyModel

EVENTS = Event._meta.db_table
JANUARY, FEBRUARY = dt.date(2001, 1, 1), dt.date(2001, 2, 1)


def months_from_now(count: int) -> list[dt.date]:
    """Return this month and those that follow, ``count`` in all."""
    today = now().date()
    return [
        dt.date(today.year + (today.month - 1 + ahead) // 12, (today.month - 1 + ahead) % 12 + 1, 1)
        for ahead in range(count)
    ]


def make_event(at: dt.datetime, kind: str = "user.created") -> Event:
    return Event.objects.create(at=at, kind=kind, actor="a@example.org", subject="", request_id="-")


@pytest.fixture
def _months_kept(transactional_db: None) -> Iterator[None]:
    """Drop the partitions that a test has made."""
    yield
    keep_months()


def test_the_tables_of_events_and_audits_are_partitioned_and_have_months_ahead(db: None) -> None:
    assert {*monthly_models()} == {Event, LogRead, QueryRun}
    for model in monthly_models():
        assert stored_months(model._meta.db_table)[-4:] == months_from_now(4)


@pytest.mark.usefixtures("_months_kept")
def test_a_row_of_a_month_without_partition_makes_it_even_if_the_caller_fails() -> None:
    at = dt.datetime(2001, 1, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)
    with transaction.atomic():
        make_event(at)
        transaction.set_rollback(True)
    assert stored_months(EVENTS)[0] == JANUARY
    assert not Event.objects.filter(at=at).exists()
    assert make_event(at).at == at
    # Another zone's evening is February in UTC.
    make_event(dt.datetime(2001, 1, 31, 23, tzinfo=dt.timezone(dt.timedelta(hours=-5))))
    assert stored_months(EVENTS)[:2] == [JANUARY, FEBRUARY]


@pytest.mark.usefixtures("_months_kept")
def test_the_job_drops_months_past_their_retention_and_makes_the_next_ones() -> None:
    old = now() - settings.EVENT_RETENTION - dt.timedelta(days=62)
    make_event(old)
    kept = make_event(now() - settings.EVENT_RETENTION + dt.timedelta(days=1))
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {EVENTS}_{months_from_now(4)[-1]:%Y_%m}")
    for _ in range(2):
        keep_months()
        assert list(Event.objects.all()) == [kept]
        months = stored_months(EVENTS)
        assert old.date().replace(day=1) not in months
        assert kept.at.date().replace(day=1) in months
        assert months[-4:] == months_from_now(4)


@pytest.mark.usefixtures("_months_kept")
def test_a_month_is_old_once_its_last_moment_is() -> None:
    make_event(dt.datetime(2001, 3, 15, tzinfo=dt.UTC))
    end = dt.datetime(2001, 4, 1, tzinfo=dt.UTC)
    assert old_months(EVENTS, before=end) == [dt.date(2001, 3, 1)]
    assert old_months(EVENTS, before=end - dt.timedelta(milliseconds=1)) == []


@pytest.mark.parametrize("partition", [False, True], ids=["table", "partition"])
@pytest.mark.parametrize(
    ("statement", "name"),
    [("UPDATE {} SET actor = 'x'", "UPDATE"), ("DELETE FROM {}", "DELETE"), ("TRUNCATE {}", "TRUNCATE")],
)
def test_the_database_refuses_to_rewrite_events(db: None, statement: str, name: str, partition: bool) -> None:
    event = make_event(now())
    table = f"{EVENTS}_{event.at:%Y_%m}" if partition else EVENTS
    refusal = f"is append-only: {name} is refused"
    with (
        pytest.raises(IntegrityError, match=refusal),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement.format(table))
    assert Event.objects.get() == event


@pytest.mark.usefixtures("_months_kept")
@pytest.mark.parametrize(
    "statement", ["UPDATE {} SET actor = 'x'", "DELETE FROM {}", "TRUNCATE {}"], ids=lambda it: it[:6]
)
def test_a_partition_made_on_demand_refuses_it_too(statement: str) -> None:
    make_event(dt.datetime(2001, 1, 1, tzinfo=dt.UTC))
    (month, *_) = stored_months(EVENTS)
    with pytest.raises(IntegrityError, match="append-only"), connection.cursor() as cursor:
        cursor.execute(statement.format(f"{EVENTS}_{month:%Y_%m}"))


def test_rows_ids_and_indexes_outlive_the_partitioning(db: None) -> None:
    fields: list[tuple[str, Any]] = [
        ("id", models.BigAutoField(primary_key=True)),
        ("at", models.DateTimeField(db_index=True)),
        ("size", models.PositiveIntegerField()),
    ]
    before = ProjectState()
    state = before.clone()
    create = CreateModel("Sample", fields)
    create.state_forwards("logs", state)
    with connection.schema_editor() as editor:
        create.database_forwards("logs", editor, before, state)
    sample: Any = state.apps.get_model("logs", "Sample")
    this_month = months_from_now(1)[0]
    times = [dt.datetime(2026, month, 9, tzinfo=dt.UTC) for month in (8, 10, 10)]
    rows = [sample.objects.create(at=at, size=number) for number, at in enumerate(times)]
    for _ in range(2):  # The second time there is nothing to do.
        with connection.schema_editor() as editor:
            PartitionByMonth("Sample").database_forwards("logs", editor, state, state)
    assert [(row.pk, row.at, row.size) for row in sample.objects.order_by("pk")] == [
        (row.pk, row.at, row.size) for row in rows
    ]
    assert sample.objects.create(at=times[0], size=3).pk == rows[-1].pk + 1
    months = stored_months("logs_sample")
    assert (months[0], months[-4]) == (dt.date(2026, 8, 1), this_month)
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, "logs_sample")
    assert [constraint["columns"] for constraint in found.values() if constraint["primary_key"]] == [
        ["id", "at"]
    ]
    assert [constraint["columns"] for constraint in found.values() if constraint["index"]] == [["at"]]
    with pytest.raises(IntegrityError, match="size"), transaction.atomic():
        sample.objects.create(at=times[0], size=-1)


def test_a_month_is_read_alone_where_the_time_is_known(db: None) -> None:
    run = QueryRun.objects.create(tenant_id="3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11", email="a@example.org")
    plan = QueryRun.objects.filter(pk=run.pk, at=run.at).explain()
    partitions = {word for word in plan.split() if word.startswith("logs_queryrun_2")}
    assert {word[:21] for word in partitions} == {f"logs_queryrun_{run.at:%Y_%m}"}


def retention_of(model: type[MonthlyModel]) -> dt.timedelta:
    value: dt.timedelta = getattr(settings, model.retention)
    return value


def test_how_long_rows_are_kept() -> None:
    assert {model.__name__: retention_of(model).days for model in monthly_models()} == {
        "Event": 730,
        "LogRead": 400,
        "QueryRun": 400,
    }
