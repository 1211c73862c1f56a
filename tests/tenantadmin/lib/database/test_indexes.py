"""Indexes that a migration adds to a table in use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from django.db import NotSupportedError, connection, models
from django.db.migrations.operations import CreateModel
from django.db.migrations.state import ProjectState
from django.test.utils import CaptureQueriesContext

from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.indexes import AddIndexWithoutLock
from tenantadmin.lib.database.months import PartitionByMonth, ensure_month, stored_months

if TYPE_CHECKING:
    from django.db.migrations.operations.base import Operation

ADD_INDEX = AddIndexWithoutLock(
    "Sample", models.Index("size", name="sample_small", condition=models.Q(size__lt=9))
)


def run(operation: Operation, state: ProjectState) -> ProjectState:
    """Run the operation of a migration, and return the state after it."""
    after = state.clone()
    operation.state_forwards("logs", after)
    with connection.schema_editor(atomic=operation.atomic) as editor:
        operation.database_forwards("logs", editor, state, after)
    return after


@pytest.fixture
def sample(transactional_db: None) -> Iterator[ProjectState]:
    """Yield the state with an empty table."""
    fields: list[tuple[str, Any]] = [
        ("id", models.BigAutoField(primary_key=True)),
        ("at", models.DateTimeField()),
        ("size", models.IntegerField()),
    ]
    yield run(CreateModel("Sample", fields), ProjectState())
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE logs_sample")


def read_indexes() -> Mapping[str, tuple[bool, str | None]]:
    """Return the indexes of sizes: whether each is complete, and to which index of the table it belongs."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, indisvalid, inhparent::regclass::text"
            " FROM pg_index JOIN pg_class ON oid = indexrelid LEFT JOIN pg_inherits ON inhrelid = oid"
            " WHERE pg_get_indexdef(oid) LIKE '%(size)%size < 9%'"
        )
        return {name: (is_valid, parent) for name, is_valid, parent in cursor.fetchall()}


def break_index(name: str) -> None:
    """Leave an index as a killed CREATE INDEX CONCURRENTLY does."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [name])


def test_partitions_get_their_index_before_the_table_takes_it_over(sample: ProjectState) -> None:
    state = run(PartitionByMonth("Sample"), sample)
    partitions = [f"logs_sample_{month:%Y_%m}" for month in stored_months("logs_sample")]
    complete = {
        "sample_small": (True, None),
        **{f"{partition}_sample_small": (True, "sample_small") for partition in partitions},
    }
    with CaptureQueriesContext(connection) as queries:
        run(ADD_INDEX, state)
    made = [query["sql"].split('"')[:4:2] for query in queries if query["sql"].startswith("CREATE INDEX")]
    assert made == [*(["CREATE INDEX CONCURRENTLY ", " ON "] for _ in partitions), ["CREATE INDEX ", " ON "]]
    assert read_indexes() == complete
    run(ADD_INDEX, state)
    assert read_indexes() == complete

    at = now().replace(year=2001, month=2, day=1)
    ensure_month("logs_sample", at)
    assert read_indexes() == {**complete, "logs_sample_2001_02_size_idx": (True, "sample_small")}


def test_an_index_that_a_killed_migration_left_is_made_again(sample: ProjectState) -> None:
    run(ADD_INDEX, sample)
    break_index("sample_small")
    run(ADD_INDEX, sample)
    assert read_indexes() == {"sample_small": (True, None)}


def test_a_killed_migration_goes_on_with_the_partition_where_it_ended(sample: ProjectState) -> None:
    state = run(PartitionByMonth("Sample"), sample)
    first, second, *rest = [f"logs_sample_{month:%Y_%m}" for month in stored_months("logs_sample")]

    def kill(execute: Any, sql: str, *arguments: Any) -> Any:
        if sql.startswith("CREATE INDEX") and rest[0] in sql:
            raise KeyboardInterrupt
        return execute(sql, *arguments)

    with pytest.raises(KeyboardInterrupt), connection.execute_wrapper(kill):
        run(ADD_INDEX, state)
    break_index(f"{second}_sample_small")
    with CaptureQueriesContext(connection) as queries:
        run(ADD_INDEX, state)
    made = [query["sql"].split('"')[3] for query in queries if query["sql"].startswith("CREATE INDEX")]
    assert made == [second, *rest, "logs_sample"]
    assert read_indexes() == {
        "sample_small": (True, None),
        **{f"{partition}_sample_small": (True, "sample_small") for partition in (first, second, *rest)},
    }


def test_it_needs_a_migration_that_is_no_transaction(sample: ProjectState) -> None:
    with pytest.raises(NotSupportedError), connection.schema_editor(atomic=True) as editor:
        ADD_INDEX.database_forwards("logs", editor, sample, sample)
