"""Find out whether a command failed because its database is not migrated."""

from __future__ import annotations

from typing import Final

from django.db import ProgrammingError, connection
from django.db.migrations.executor import MigrationExecutor
from psycopg.errors import UndefinedTable

NOT_MIGRATED: Final = (
    "The database is not migrated: "
    "run manage.py migrate, or set VAR_DIR or DATABASE_URL to the value of the service."
)


def is_missing_migrations(error: ProgrammingError) -> bool:
    """Return True if a table is missing and the database has unapplied migrations."""
    if not isinstance(error.__cause__, UndefinedTable):
        return False
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
