"""Tables that PostgreSQL partitions by month: appends stay cheap, and old rows are dropped with a partition.

A model inherits from `MonthlyModel`, and a migration makes its table partitioned with `PartitionByMonth`.
For Django it is a plain model with the key ``id``, because the admin site of Django 5.2 refuses composite
keys. In the database the key is ``(id, at)``: it must contain the column by which the table is partitioned.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final

import psycopg
from django.apps import apps
from django.conf import settings
from django.db import connection, models, transaction
from django.db.migrations.operations.base import Operation

from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import ProjectState

#: The advisory lock that serializes the creation of partitions; an arbitrary constant.
_MONTHS_LOCK: Final = 4_202_304
#: Number of future months for which partitions exist.
MONTHS_AHEAD: Final = 3
#: Changing partitions waits at most this long for other users of the table.
LOCK_TIMEOUT: Final = "SET LOCAL lock_timeout = '5s'"
#: The partitions that this process has seen, as database and name.
_seen: Final[set[tuple[str, str]]] = set()


class MonthlyModel(models.Model):
    """A model whose table is partitioned by the month of ``at``, in UTC.

    Create rows by ``save`` or ``create``: both make sure that the partition exists. ``bulk_create`` does not,
    and SQL needs `ensure_month` first.
    """

    at = models.DateTimeField(default=now)
    #: The setting with the time (a timedelta) that rows are kept.
    retention: ClassVar[str]

    class Meta:
        abstract = True

    def save(self, *args: Any, **options: Any) -> None:
        if self._state.adding:
            ensure_month(self._meta.db_table, self.at)
        super().save(*args, **options)


class PartitionByMonth(Operation):
    """Make the existing table of a `MonthlyModel` partitioned. Rows, indexes and constraints are kept.

    ``append_only`` makes the database refuse UPDATE, DELETE and TRUNCATE, on each partition too. Reversing
    does nothing, because the model works with a partitioned table as with a plain one.
    """

    def __init__(self, name: str, *, append_only: bool = False) -> None:
        self.name = name
        self.append_only = append_only

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return type(self).__name__, [self.name], {"append_only": self.append_only}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Change nothing: Django does not know about partitions."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,  # noqa: ARG002
        to_state: ProjectState,
    ) -> None:
        table = to_state.apps.get_model(app_label, self.name)._meta.db_table
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass", [table])
            if cursor.fetchone() == (True,):
                return  # Reversing has left it so.
            _partition(cursor, table)
            if self.append_only:
                cursor.execute(_REFUSE_CHANGES.format(table=table))
            _copy_rows(cursor, table)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Leave the table partitioned."""

    def describe(self) -> str:
        return f"Partition the table of {self.name} by month"


#: Row triggers are copied to partitions by PostgreSQL, statement triggers by `_create_month`.
_REFUSE_CHANGES: Final = """
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The table % is append-only: % is refused.', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'integrity_constraint_violation';
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON {table} EXECUTE FUNCTION refuse_change();
"""


def monthly_models() -> list[type[MonthlyModel]]:
    """Return the models whose tables are partitioned by month."""
    return [model for model in apps.get_models() if issubclass(model, MonthlyModel)]


def keep_months() -> None:
    """Create the partitions of this month and the next ones; drop partitions past their retention.

    It is safe to kill this function and run it again.

    Raises:
        OperationalError: another transaction uses a table for too long. The next run continues.
    """
    for model in monthly_models():
        table = model._meta.db_table
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(LOCK_TIMEOUT)
            for month in _months(now(), ahead=MONTHS_AHEAD):
                _create_month(cursor, table, month)
        for month in old_months(table, before=now() - getattr(settings, model.retention)):
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(LOCK_TIMEOUT)
                cursor.execute(f"ALTER TABLE {table} DETACH PARTITION {_name(table, month)}")
                cursor.execute(f"DROP TABLE {_name(table, month)}")
            _seen.discard(_key(table, month))


def old_months(table: str, *, before: dt.datetime) -> list[dt.date]:
    """Return the months whose partition has only rows before ``before``, oldest first."""
    return [month for month in stored_months(table) if _start(_next(month)) <= before]


def stored_months(table: str) -> list[dt.date]:
    """Return the months that have a partition, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT right(inhrelid::regclass::text, 7) FROM pg_inherits WHERE inhparent = %s::regclass",
            [table],
        )
        return sorted(dt.datetime.strptime(text, "%Y_%m").date() for (text,) in cursor.fetchall())  # noqa: DTZ007


def ensure_month(table: str, at: dt.datetime) -> None:
    """Create the partition for a row with the time ``at``, unless this process has seen it before.

    Uses its own connection, so that the partition stays if the caller's transaction is rolled back.
    """
    month = at.astimezone(dt.UTC).date().replace(day=1)
    if _key(table, month) in _seen:
        return
    parameters: dict[str, Any] = connection.get_connection_params()
    with psycopg.connect(**parameters) as own, own.cursor() as cursor:
        cursor.execute(LOCK_TIMEOUT)
        _create_month(cursor, table, month)
    _seen.add(_key(table, month))


def _create_month(cursor: Any, table: str, month: dt.date) -> None:
    """Create the partition of a month unless it exists, without blocking reads and writes of the table."""
    name = _name(table, month)
    cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_MONTHS_LOCK, table])
    cursor.execute("SELECT to_regclass(%s)", [name])
    if cursor.fetchone() != (None,):
        return
    # Not CREATE TABLE … PARTITION OF, which would lock the table against all users.
    cursor.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)")
    cursor.execute(
        f"ALTER TABLE {table} ATTACH PARTITION {name}"
        f" FOR VALUES FROM ('{_start(month)}') TO ('{_start(_next(month))}')"
    )
    cursor.execute(
        "SELECT 1 FROM pg_trigger WHERE tgrelid = %s::regclass AND tgname = 'append_only_truncate'", [table]
    )
    if cursor.fetchone():
        cursor.execute(
            f"CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON {name} EXECUTE FUNCTION refuse_change()"
        )


def _partition(cursor: Any, table: str) -> None:
    """Replace a table by an empty partitioned one. The rows are then in ``<table>_plain``."""
    cursor.execute(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index"
        " WHERE indrelid = %s::regclass AND NOT indisprimary",
        [table],
    )
    indexes = cursor.fetchall()
    for index, _ in indexes:
        cursor.execute(f"DROP INDEX {index}")
    cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey")
    cursor.execute(f"ALTER TABLE {table} RENAME TO {table}_plain")
    cursor.execute(
        f"CREATE TABLE {table} (LIKE {table}_plain"
        " INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING IDENTITY,"
        f" CONSTRAINT {table}_pkey PRIMARY KEY (id, at)) PARTITION BY RANGE (at)"
    )
    for _, definition in indexes:
        cursor.execute(definition)


def _copy_rows(cursor: Any, table: str) -> None:
    """Create the partitions, copy the rows from ``<table>_plain``, and drop that table."""
    cursor.execute(f"SELECT min(at), max(id) FROM {table}_plain")  # noqa: S608 - the table of a model
    oldest, last_id = cursor.fetchone()
    for month in _months(oldest or now(), ahead=MONTHS_AHEAD):
        _create_month(cursor, table, month)
    cursor.execute(f"INSERT INTO {table} SELECT * FROM {table}_plain")  # noqa: S608
    if last_id is not None:
        cursor.execute("SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [table, last_id])
    cursor.execute(f"DROP TABLE {table}_plain")


def _months(oldest: dt.datetime, *, ahead: int) -> Iterator[dt.date]:
    """Yield the months from ``oldest`` to ``ahead`` months after the current one."""
    month = oldest.astimezone(dt.UTC).date().replace(day=1)
    last = now().date().replace(day=1)
    for _ in range(ahead):
        last = _next(last)
    while month <= last:
        yield month
        month = _next(month)


def _next(month: dt.date) -> dt.date:
    return (month + dt.timedelta(days=31)).replace(day=1)


def _start(month: dt.date) -> dt.datetime:
    return dt.datetime(month.year, month.month, 1, tzinfo=dt.UTC)


def _key(table: str, month: dt.date) -> tuple[str, str]:
    return str(connection.settings_dict["NAME"]), _name(table, month)


def _name(table: str, month: dt.date) -> str:
    return f"{table}_{month:%Y_%m}"
