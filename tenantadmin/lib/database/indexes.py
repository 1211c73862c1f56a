"""Indexes that a migration adds to a table in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.postgres.operations import NotInTransactionMixin
from django.db import transaction
from django.db.migrations.operations import AddIndex

from tenantadmin.lib.database.months import LOCK_TIMEOUT

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import ProjectState
    from django.db.models import Index, Model


class AddIndexWithoutLock(NotInTransactionMixin, AddIndex):
    """Create an index while processes write to the table.

    PostgreSQL creates no index of a partitioned table concurrently. Therefore each partition gets its index
    first. Then the table gets one, which takes over those of the partitions, and which later partitions get.

    It is safe to kill the migration and run it again, if all its operations are of this class.
    """

    atomic = False

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,  # noqa: ARG002
        to_state: ProjectState,
    ) -> None:
        self._ensure_not_in_transaction(schema_editor)
        model = to_state.apps.get_model(app_label, self.model_name)
        table = model._meta.db_table
        with schema_editor.connection.cursor() as cursor:
            if _is_valid(cursor, self.index.name):
                return
            cursor.execute("SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass", [table])
            if cursor.fetchone() == (False,):
                _create_concurrently(cursor, schema_editor, model, self.index)
                return
            cursor.execute(
                "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid"
                " WHERE inhparent = %s::regclass ORDER BY relname",
                [table],
            )
            for (partition,) in cursor.fetchall():
                index = self.index.clone()
                index.name = f"{partition}_{self.index.name}"
                _create_concurrently(cursor, schema_editor, model, index, partition=partition)
            with transaction.atomic(schema_editor.connection.alias):
                cursor.execute(LOCK_TIMEOUT)
                schema_editor.add_index(model, self.index)

    def describe(self) -> str:
        return f"{super().describe()} without a lock"


def _create_concurrently(
    cursor: Any,
    editor: BaseDatabaseSchemaEditor,
    model: type[Model],
    index: Index,
    *,
    partition: str | None = None,
) -> None:
    """Create an index of a table, or of one of its partitions, unless it exists."""
    is_valid = _is_valid(cursor, index.name)
    if is_valid:
        return
    if is_valid is False:  # An earlier run was killed.
        editor.execute(f"DROP INDEX CONCURRENTLY {editor.quote_name(index.name)}")
    statement = index.create_sql(model, editor, concurrently=True)
    if partition is not None:
        statement.rename_table_references(model._meta.db_table, partition)
    editor.execute(statement, params=None)


def _is_valid(cursor: Any, name: str) -> bool | None:
    """Return True if the index is complete, or None if there is none."""
    cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [f'"{name}"'])
    row = cursor.fetchone()
    return None if row is None else row[0]
